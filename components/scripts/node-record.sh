# shellcheck shell=bash
# What the cluster records of this stack's own nodes: ConfigMap kube-system/kube-ha-nodes, which no kubelet can read or
# write. Masters evict, cordon and delete Nodes that stand here and no others, and take away labels and taints that
# stand here. It needs no memory of the stack's, so what an update that was interrupted has brought is known to
# whichever comes next. Only definitions; phases source it, and cluster-reader.sh.
# Its keys: joining.NAME (that node was asked for, written before it can join), known (names as in WANTED: all that the
# list of nodes has left in the cluster),
#   labels, taints and, of a network that writes some, annotations (lines "names<TAB>words": what was set last; while
#   they are being set, what is to be as well).
RECORD_NAME=kube-ha-nodes
RECORD="{}" # its data, once it is read

# shellcheck disable=SC2016 # of jq
RECORD_FORMS='
  def names: split(",")[]
    | only("[a-z0-9]([a-z0-9-]*[a-z0-9])?|[a-z0-9][a-z0-9-]*\\[[0-9]{1,5}-[0-9]{1,5}(/[0-9]{1,5})?\\]")
    | select(. != "");
  def word($kind): (if $kind != "taints" then "" else ":(NoSchedule|PreferNoSchedule|NoExecute)" end) as $tail
    | "[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?" as $part
    | only("([a-z0-9.-]{1,253}/)?\($part)=(\($part))?" + $tail);
  def words($kind): split(" ")[] | word($kind) | select(. != "");'

read_record() {
  RECORD=$(kubectl_admin -n kube-system get configmap "$RECORD_NAME" --ignore-not-found -o json)
  RECORD=$(jq -c '.data // {} | with_entries(select(.value | type == "string"))' <<<"${RECORD:-"{}"}")
}
recorded() { jq -e --arg key "$1" 'has($key)' <<<"$RECORD" >/dev/null; } # recorded KEY

# write_record: keys of the JSON on stdin are set, those that are null are taken away.
write_record() {
  local patch answer
  patch=$(jq -c '{data: .}')
  if answer=$(patch_record <<<"$patch" 2>&1); then return; fi
  [[ $answer == *NotFound* ]] || die "ConfigMap kube-system/$RECORD_NAME cannot be written: $answer"
  kubectl_admin -n kube-system create configmap "$RECORD_NAME" >/dev/null 2>&1 || true # another master has just made it
  patch_record <<<"$patch" >/dev/null
}
patch_record() { kubectl_admin -n kube-system patch configmap "$RECORD_NAME" --type merge --patch-file /dev/stdin; }

# ask_for NAMES: these nodes may join from now on. NAMES as in WANTED.
ask_for() {
  local names
  names=$(expand "$1" | jq -Rnc '[inputs | select(. != "") | {key: "joining.\(.)", value: "1"}] | from_entries')
  write_record <<<"$names"
}

ask_for_self() {
  local asked
  read_record
  asked=$(asked_nodes)
  if [[ $'\n'$asked$'\n' != *$'\n'"$NODE"$'\n'* ]]; then ask_for "$NODE"; fi
}

# Names that were ever asked for and not taken out since, one a line. In a cluster of a version that recorded none:
# nodes that this stack's phases ran on.
asked_nodes() {
  local parts rows=""
  parts=$(jq -r "$CLEAN $RECORD_FORMS"' ((.known // "") | names),
    (keys[] | select(startswith("joining.")) | .[8:] | dns_label | select(. != ""))' <<<"$RECORD")
  if ! recorded known; then rows=$(read_nodes applied begun); fi
  { expand "${parts//$'\n'/,}" && awk -F'|' '$2 $3 != "" {print $1}' <<<"$rows"; } | awk NF | sort -u
}

# marks_held labels|taints|annotations: lines "names<TAB>words" of what was set last.
marks_held() {
  if recorded "$1"; then
    jq -r --arg kind "$1" "$CLEAN $RECORD_FORMS"' .[$kind] | split("\n")[] | select(. != "") | split("\t")
      | "\([.[0] | names] | join(","))\t\([.[1] // "" | words($kind)] | join(" "))"' <<<"$RECORD"
  else # of a version that kept them on the Nodes
    nodes_json |
      jq -r --arg kind "$1" "$CLEAN $RECORD_FORMS"' .items[] | .metadata.annotations["kube-ha.io/" + $kind] as $held
      | select($held | type == "string")
      | "\(.metadata.name | dns_label)\t\([$held[0:8000] | words($kind)] | join(" "))"'
  fi
}
# mark_lines LINES: rows "name<TAB>word" of "names<TAB>words", and one of each name alone.
mark_lines() {
  local names words
  while IFS=$'\t' read -r names words; do
    if [[ -n $names ]]; then
      expand "$names" |
        awk -v words="$words" \
          '{n = split(words, word, " "); print $0 "\t"; for (i = 1; i <= n; i++) print $0 "\t" word[i]}'
    fi
  done <<<"$1"
}

# hold_marks KIND HELD WANTED: both are known until all is set, so whatever a run that is cut off has set goes with the
# next one, a revert too.
hold_marks() {
  local both
  if [[ $2 == "$3" ]] && recorded "$1"; then return; fi
  both=$(printf '%s\n%s\n' "$2" "$3" | awk 'NF && !seen[$0]++' | jq -Rsc --arg kind "$1" '{($kind): .}')
  write_record <<<"$both"
}

# What is in order now is all there is to know.
settle_record() { # settle_record KNOWN LABELS TAINTS [ANNOTATIONS]
  local patch
  # By files: names that do not count on may be longer than an argument.
  patch=$(jq -c --rawfile known <(printf '%s' "$1") --rawfile labels <(printf '%s' "$2") \
    --rawfile taints <(printf '%s' "$3") --rawfile annotations <(printf '%s' "${4:-}") \
    '. as $is | ({known: $known, labels: $labels, taints: $taints}
      + (if $annotations == "" and (has("annotations") | not) then {} else {annotations: $annotations} end)) as $new
    | (reduce (keys[] | select(startswith("joining."))) as $key ({}; .[$key] = null)) + $new
    | if . == $is then empty else . end' <<<"$RECORD")
  if [[ -n $patch ]]; then write_record <<<"$patch"; fi
}
