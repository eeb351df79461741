# shellcheck shell=bash
# Reconciles Node objects with the config and waits for them. Wanted nodes are registered, have applied what is wanted,
# are Ready, labelled and tainted. Nodes to remove are evicted, their etcd members removed by the remaining ones, and
# their Nodes deleted, before their machines are touched. Runs on a control plane node.
# Variables:
#   WANTED              lines "pool applied names", names as a-[1-3],b-[2-8/3]
#   LABELS, TAINTS      lines "names<TAB>key=value ..." and "names<TAB>key=value:effect ..."
#   ANNOTATIONS         as LABELS; may be unset
#   MEMBERS             words "name=address": wanted etcd members
#   ETCD_ENDPOINTS      comma list, as the API server's
#   STALL_S             seconds without progress after which the phase fails
#   IDLE_S              the same, where nothing is under way either
#   NETWORK             1: nodes become Ready
#   MAINTENANCE, EMPTIED, DRAIN, KEPT: see maintenance.sh; may be unset
#   ABSENT, CONTROL_PLANE, ABSENT_BUDGET: see absent.sh
#   ADDONS              words: wanted user add-ons; may be unset
# Changes: Nodes, etcd's members, objects of user add-ons that left the config.
# shellcheck source=etcdctl.sh disable=SC2154 # here: the folder of run.sh
source "$here/etcdctl.sh"
# shellcheck source=membership.sh disable=SC2154 # here: the folder of run.sh
source "$here/membership.sh"
# shellcheck source=cluster-reader.sh
source "$here/cluster-reader.sh"
# shellcheck source=hooks.sh disable=SC2154
source "$here/hooks.sh"
# shellcheck source=node-record.sh
source "$here/node-record.sh"
# shellcheck source=etcd-identity.sh
source "$here/etcd-identity.sh"
# shellcheck source=addon-list.sh
source "$here/addon-list.sh"
# shellcheck source=reconcile.sh
source "$here/reconcile.sh"
# shellcheck source=tokens.sh
source "$here/tokens.sh"
# shellcheck source=absent.sh
source "$here/absent.sh"
# shellcheck source=update.sh
source "$here/update.sh"
# shellcheck source=evictions.sh
source "$here/evictions.sh"
# shellcheck source=maintenance.sh
source "$here/maintenance.sh"

# Wanted nodes that are not as wanted, one a line: "busy", "idle" (nothing is under way there) or "failed", then the
# name with the reason.
missing() {
  local have
  have=$(cluster_table) || {
    echo "$NO_ANSWER"
    return
  }
  awk -F'|' -v network="$NETWORK" "$NODE_ROWS"'
    END {
      for (name in want) {
        silent = begun[name] == "" && ready[name] == "Unknown"
        if (!there[name]) say("busy", name, "not registered")
        else if (index(failed[name], want[name] " ") == 1)
          say("failed", name, "failed at " substr(failed[name], length(want[name]) + 2))
        else if (applied[name] != want[name] && begun[name] != "")
          say("busy", name, "has begun to apply this configuration")
        else if (applied[name] != want[name])
          say(applied[name] == "" ? "busy" : "idle", name, \
            "has not applied this configuration" (silent ? ", and is unresponsive" : ""))
        else if (ready[name] != "True" && network == 1)
          say(silent ? "idle" : "busy", name, silent ? "is unresponsive" : "not Ready")
      }
    }' <(waited_for "$have") <(printf '%s\n' "$have") | sort
}

wait_for_nodes() {
  local left count failures known=unread fewest="" since=$SECONDS limit
  while true; do
    left=$(missing)
    if [[ -z $left ]]; then
      tell_left_out
      return
    fi
    failures=$(sed -n 's/^failed //p' <<<"$left")
    if [[ $left != "$NO_ANSWER" ]]; then
      # What stands there at first may be of an earlier update, and its retry has not begun yet: only news ends the wait
      # at once.
      if [[ $known == unread ]]; then known=$failures; fi
      failures=$(comm -13 <(sort <<<"$known") <(sort <<<"$failures"))
      if [[ -n $failures ]]; then
        die "$(first_rows "$failures")" "fix what the failed command above names, then run pulumi up again"
      fi
      count=$(wc -l <<<"$left")
      if ((count < ${fewest:-count + 1})); then fewest=$count since=$SECONDS; fi
    fi
    limit=$STALL_S
    if [[ $'\n'$left != *$'\n'busy* ]]; then limit=$IDLE_S; fi
    if ((SECONDS - since >= limit)); then give_up "$left" "$limit"; fi
    end_unheard
    sleep 1
  done
}
tell_left_out() {
  local have names
  have=$(cluster_table)
  names=$(left_out "$have")
  if [[ -n $names ]]; then log "WARNING unresponsive, and not waited for: $(paste -sd' ' <<<"$names")"; fi
}
give_up() { # give_up MISSING SECONDS
  local todo="see the failure of that node above, or journalctl -u kubelet -u containerd there;"
  todo+=" then run pulumi up again; if nothing failed there, raise converge.generation first"
  if [[ $'\n'$1 != *$'\n'busy* ]]; then
    todo="see the failure of that node above; a machine that cannot be reached has to be switched on,"
    todo+=" or said to be absent or lost (nodes.NAME.state); then run pulumi up again"
  fi
  die "$(wc -l <<<"$1") node(s) not as wanted, and nothing moved for $2 s: $(first_rows "$(cut -d' ' -f2- <<<"$1")")" \
    "$todo"
}

# Who is in the cluster, whether it is there or not.
members_here() { { wanted_table | cut -d' ' -f1 && absent_names; } | sort; }
# Who leaves: Nodes that this stack has asked for once, by the cluster's own record, and wants no more. Callers take its
# output into a variable: where a loop reads it straight, an API that does not answer would count as "none".
unwanted_nodes() {
  local have asked
  have=$(read_nodes)
  asked=$(asked_nodes)
  comm -12 <(printf '%s\n' "$asked") <(printf '%s\n' "$have") | comm -23 - <(members_here)
}
# Anybody else's are left alone: `make drift` tells of them too.
tell_strangers() {
  local have asked name names
  have=$(read_nodes)
  asked=$(asked_nodes)
  names=$(comm -23 <(printf '%s\n' "$have") <({ printf '%s\n' "$asked" && members_here; } | sort -u))
  while read -r name; do
    if [[ -n $name ]]; then
      log "WARNING Node $name was never asked for by this stack, and is left alone; kubectl delete node $name takes" \
        "it out"
    fi
  done <<<"$names"
}

# A node that an earlier run began to retire, and that is wanted again.
keep_nodes() {
  local name leaving wanted rows
  wanted=$(wanted_table)
  rows=$(read_nodes leaving)
  while IFS='|' read -r name leaving; do
    if [[ $leaving == true && $'\n'$wanted == *$'\n'"$name "* ]]; then
      kubectl_admin uncordon -- "$name" >/dev/null
      kubectl_admin annotate -- node "$name" kube-ha.io/leaving- >/dev/null
      changes=$((changes + 1))
      tell_hook afterUncordon "$name" "stays"
    fi
  done <<<"$rows"
}

# All are cordoned before one is drained: what it gives up must not go to the next. And all are drained before a member
# leaves: the kubelet of a leaving master that talks to the apiserver beside a removed member would not hear of an
# eviction for over a minute.
drain_nodes() {
  local name names
  names=$(unwanted_nodes)
  while read -r name; do
    if [[ -z $name ]]; then continue; fi
    kubectl_admin annotate --overwrite -- node "$name" kube-ha.io/leaving=true >/dev/null
    kubectl_admin cordon -- "$name" >/dev/null
  done <<<"$names"
  while read -r name; do
    if [[ -n $name ]]; then drain_node "$name"; fi
  done <<<"$names"
}

# A removal that was done and then taken back leaves a member out.
expect_members() {
  local member rows
  rows=$(etcd_local member list -w simple)
  for member in $MEMBERS; do
    awk -F', ' -v url="https://${member#*=}:2380" \
      '$4 == url && $2 == "started" && $6 == "false" {found = 1} END {exit !found}' <<<"$rows" ||
      die "$member is not a voting etcd member$(of_another_cluster "${member#*=}")" \
        "raise converge.generation and run pulumi up again: it joins again"
  done
}

# Members that are not wanted, lines "id name client-URL" (- for what is not known). Those that do not answer come
# first: they only weigh on the quorum of the others.
leaving_members() {
  local member wanted=" " rows id name client
  for member in $MEMBERS; do wanted+="https://${member#*=}:2380 "; done
  rows=$(etcd_local member list -w simple)
  awk -F', ' -v wanted="$wanted" \
    '!index(wanted, " " $4 " ") {print $1, ($3 == "" ? "-" : $3), ($5 == "" ? "-" : $5)}' <<<"$rows" |
    while read -r id name client; do
      printf '%s %s %s %s\n' "$(healthy_count "$client")" "$id" "$name" "$client"
    done | sort -s -n -k 1,1 | cut -d' ' -f2-
}

# One at a time, each only if those that remain have a quorum of healthy voters of their own.
retire_members() {
  local id name client members
  members=$(leaving_members)
  while read -r id name client; do
    if [[ -z $id ]]; then continue; fi
    quorum_without "$id" "$name"
    retire_member "$id" "$name" "$client"
  done <<<"$members"
}
delete_nodes() {
  local name names
  names=$(unwanted_nodes)
  while read -r name; do
    if [[ -z $name ]]; then continue; fi
    # Before the Node is gone: a later run asks again.
    tell_hook beforeRelease "$name" "leaves"
    kubectl_admin delete -- node "$name" >/dev/null
  done <<<"$names"
}

# What Nodes lack of labels and taints that are wanted, and have of those that we once set: rows
# "name ...|key=value ... key-" of Nodes with the same to do, taints as kubectl writes them. Their own labels and taints
# are only compared; every word is one of WANTED or of the record. What others set stays.
# shellcheck disable=SC2016 # of jq
MARKS='
  def table($lines): reduce ($lines | split("\n")[] | select(. != "")
  | split("\t")) as $row ({}; .[$row[0]] += [$row[1] | select(. != "")]);
  def key($kind): if $kind != "taints" then .[0:index("=")] else .[0:index("=")] + ":" + (. / ":" | last) end;
  def value($kind): .[index("=") + 1:] | if $kind != "taints" then . else .[0:rindex(":")] end;
  (table($wanted)) as $want | (table($held)) as $last | [.items[]
  | .metadata.name as $name | ($want[$name] // []) as $words | ($last[$name] // []) as $before
  | select($want | has($name))
  | (if $kind != "taints" then .metadata[$kind] // {}
  else [.spec.taints[]? | {key: "\(.key):\(.effect)", value: (.value // "")}] | from_entries end) as $is
  | [$words[] | key($kind)] as $keys
  | [$words[] | select($is[key($kind)] != value($kind))] + ([$before[] | key($kind)] | unique
  | map(select(. as $key | ($is | has($key)) and ($keys | index($key) == null)) + "-"))
  | select(. != []) | {$name, words: join(" ")}] | group_by(.words)[]
  | .[0].words as $words | range(0; length; 20) as $at
  | "\(.[$at:$at + 20] | map(.name) | join(" "))|\($words)"'
# Authoritative for what we once set, silent about what others set.
mark_nodes() {
  mark_kind labels label "$LABELS"
  mark_kind taints taint "$TAINTS"
  if [[ -n ${ANNOTATIONS:-} ]] || recorded annotations; then mark_kind annotations annotate "${ANNOTATIONS:-}"; fi
}
mark_kind() { # mark_kind KIND VERB LINES
  local kind=$1 verb=$2 held rows names words nodes list count pid pids=()
  held=$(marks_held "$kind")
  hold_marks "$kind" "$held" "$3"
  rows=$(nodes_json |
    jq -r --arg kind "$kind" --rawfile wanted <(mark_lines "$3") --rawfile held <(mark_lines "$held") "$MARKS")
  while IFS='|' read -r names words; do
    if [[ -z $names ]]; then continue; fi
    # One call for some, for kubectl takes longer to start than to ask; and some calls at a time, for each asks for ten
    # Nodes at once and then for five a second.
    read -ra nodes <<<"$names"
    read -ra list <<<"$words"
    kubectl_admin "$verb" --overwrite -- node "${nodes[@]}" "${list[@]}" >/dev/null &
    pids+=($!)
    if ((${#pids[@]} >= 5)); then
      for pid in "${pids[@]}"; do wait "$pid"; done
      pids=()
    fi
    count=$(wc -w <<<"$names")
    changes=$((changes + count))
  done <<<"$rows"
  for pid in "${pids[@]}"; do wait "$pid"; done
  # Of a version that kept them there.
  if [[ -n $held ]] && ! recorded "$kind"; then kubectl_admin annotate --all -- nodes "kube-ha.io/$kind-" >/dev/null; fi
}
settle_nodes() {
  settle_record "$(awk 'NF {printf "%s%s", sep, $3; sep = ","}' <<<"$WANTED")${ABSENT:+,$ABSENT}" "$LABELS" "$TAINTS" \
    "${ANNOTATIONS:-}"
}

main() {
  own
  wait_for_nodes
  know_cluster
  expect_members
  read_record
  mark_nodes
  keep_nodes
  maintain_nodes
  drain_nodes
  retire_members
  delete_nodes
  tell_strangers
  settle_nodes
  # First: what is deleted would come back.
  # shellcheck disable=SC2086 # words are words
  keep_only ${ADDONS:-}
  # shellcheck disable=SC2086
  sweep_addons ${ADDONS:-}
  wait_for 60 "bootstrap tokens of kube-ha gone" end_tokens # all have joined
  finish
}
