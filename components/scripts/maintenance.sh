# shellcheck shell=bash
# Maintenance of nodes, as the cluster sees it: no new pods; pods evicted, or kept while the node is down. Only
# definitions; phase nodes sources it, with cluster-reader.sh, membership.sh, update.sh and evictions.sh.
# Variables: MAINTENANCE (names as a-[1-3], to be cordoned; may be unset), EMPTIED (the same, of which the pods are
#   evicted; may be unset), DRAIN ("always seconds grace", with EMPTIED), KEPT (lines "names<TAB>seconds": how long pods
#   stay on an unresponsive node; may be unset).

maintain_nodes() {
  local emptied away name timeout
  emptied=$(nodes_to_empty)
  away=$(comm -13 <(sort <<<"$emptied") <(sorted_names "${EMPTIED:-}"))
  if [[ -n $away ]]; then log "WARNING unresponsive, so their pods are not evicted: $(paste -sd' ' <<<"$away")"; fi
  try_evictions "$emptied" "take out nodes.NAME.drain"
  cordon_nodes
  keep_pods
  read -r _ timeout _ <<<"${DRAIN:-}"
  while read -r name; do
    if [[ -n $name ]]; then
      tell_hook beforeDrain "$name" "maintenance"
      log "evicting the pods of $name"
      empty_node "$name" "$timeout"
      changes=$((changes + 1))
    fi
  done <<<"$emptied"
}

# Of a node that is down no kubelet says that a pod has ended: it would be waited for in vain.
nodes_to_empty() {
  local name
  while read -r name; do
    is_unresponsive "$name" || printf '%s\n' "$name"
  done < <(expand "${EMPTIED:-}")
}

# Nodes in maintenance take no new pods. One that an administrator had cordoned before stays so afterwards.
cordon_nodes() {
  local rows wanted resting name mark cordoned
  resting=$(expand "${MAINTENANCE:-}")
  wanted=$(wanted_table)
  rows=$(read_nodes maintenance cordoned)
  while IFS='|' read -r name mark cordoned; do
    if [[ -n $name && $'\n'$resting$'\n' == *$'\n'"$name"$'\n'* ]]; then
      if [[ -z $mark ]]; then mark_maintenance "$name" "${cordoned:-false}"; fi
      if [[ $cordoned != true ]]; then kubectl_admin cordon -- "$name" >/dev/null; fi
    elif [[ -n $mark && $'\n'$wanted == *$'\n'"$name "* ]]; then
      # The mark goes last: a run that was cut off uncordons again.
      if [[ $mark != cordoned-before ]]; then kubectl_admin uncordon -- "$name" >/dev/null; fi
      kubectl_admin annotate -- node "$name" kube-ha.io/maintenance- >/dev/null
      changes=$((changes + 1))
      if [[ $mark != cordoned-before ]]; then tell_hook afterUncordon "$name" "maintenance is over"; fi
    fi
  done <<<"$rows"
}
mark_maintenance() { # mark_maintenance NODE CORDONED
  local mark=true
  if [[ $2 == true ]]; then mark="cordoned-before"; fi
  kubectl_admin annotate -- node "$1" "kube-ha.io/maintenance=$mark" >/dev/null
  changes=$((changes + 1))
}

# Kubernetes deletes the pods of a node that is unresponsive after the seconds of their own tolerations, usually 300.
# Nothing else of a toleration may change. The mark on the Node comes first and goes last: a run that was cut off is
# repeated.
keep_pods() {
  local rows name before seconds
  rows=$(read_nodes kept)
  while IFS='|' read -r name before; do
    if [[ -z $before${KEPT:-} ]]; then continue; fi
    seconds=$(kept_seconds "$name")
    if [[ -z $before$seconds ]]; then continue; fi
    if [[ -n $seconds && $seconds != "$before" ]]; then
      kubectl_admin annotate --overwrite -- node "$name" "kube-ha.io/kept=$seconds" >/dev/null
    fi
    wait_for 60 "tolerations of the pods on $name" tolerate "$name" "$seconds"
    if [[ -z $seconds ]]; then kubectl_admin annotate -- node "$name" kube-ha.io/kept- >/dev/null; fi
  done <<<"$rows"
}
kept_seconds() { # kept_seconds NODE: nothing where its pods stay as long as they ask
  local names seconds
  while IFS=$'\t' read -r names seconds; do
    if [[ -n $names && $'\n'$(expand "$names")$'\n' == *$'\n'"$1"$'\n'* ]]; then printf '%s' "$seconds"; fi
  done <<<"${KEPT:-}"
}
# Fails while a pod has changed since it was read.
tolerate() { # tolerate NODE SECONDS
  local rows namespace name patch
  rows=$(kubectl_admin get pods -A --field-selector "spec.nodeName=$1" -o json |
    jq -r --arg seconds "$2" "$TOLERATIONS")
  while IFS=$'\t' read -r namespace name patch; do
    if [[ -z $namespace ]]; then continue; fi
    kubectl_admin patch --type merge -p "$patch" -n "$namespace" -- pod "$name" >/dev/null || return 1
    changes=$((changes + 1))
  done <<<"$rows"
}
# Rows "namespace name patch" of pods whose tolerations are to change. What they were before is in an annotation of the
# pod, "not-ready=300,unreachable=300". A pod that tolerates for longer than SECONDS, or has two tolerations of one
# taint, is left alone.
# shellcheck disable=SC2016 # of jq
TOLERATIONS="$CLEAN"'
  def taint: .key // "" | ltrimstr("node.kubernetes.io/");
  def is_due: (.key == "node.kubernetes.io/not-ready" or .key == "node.kubernetes.io/unreachable")
    and .effect == "NoExecute" and (.tolerationSeconds | type) == "number";
  def said_before: .metadata.annotations["kube-ha.io/tolerated"]?
    | only("(not-ready|unreachable)=[0-9]{1,9}(,(not-ready|unreachable)=[0-9]{1,9})?")
    | [splits(",") | select(. != "") | split("=") | {key: .[0], value: (.[1] | tonumber)}] | from_entries;
  .items[] | select(.metadata.deletionTimestamp == null)
  | select(.metadata.annotations["kubernetes.io/config.mirror"] == null)
  | [.spec.tolerations[]? | select(is_due)] as $due | select(($due | unique_by(.key) | length) == ($due | length))
  | said_before as $said
  | ([$due[] | {key: taint, value: ($said[taint] // .tolerationSeconds)}] | from_entries) as $before
  | [.spec.tolerations[]? | if is_due then .tolerationSeconds = ([$before[taint], ($seconds | tonumber? // 0)] | max)
    else . end] as $wanted
  | select($wanted != (.spec.tolerations // []) or ($seconds == "" and $said != {}))
  | [(.metadata.namespace, .metadata.name | only("[a-z0-9]([a-z0-9.-]*[a-z0-9])?"))] as $names
  | select($names | index("") == null)
  | {metadata: {resourceVersion: (.metadata.resourceVersion | only("[0-9]+")), annotations: {"kube-ha.io/tolerated":
      (if $seconds == "" then null else [$before | to_entries[] | "\(.key)=\(.value)"] | sort | join(",") end)}},
    spec: {tolerations: $wanted}} as $patch
  | $names + [$patch | tojson] | join("\t")'
