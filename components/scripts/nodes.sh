# shellcheck shell=bash
# Makes the list of Nodes what the config says, and waits for it: wanted ones registered with the wanted generation applied, Ready, labelled and tainted;
# others evicted, their etcd member removed by the survivors, and deleted, before their machines are touched. Runs on a master.
# Values: WANTED (lines "pool applied names", names as a-[1-3],b-[2-8/3]), LABELS (lines "names<TAB>key=value ..."), TAINTS (lines "names<TAB>key=value:effect ..."),
#   MEMBERS (words "name=address", wanted etcd members), ETCD_ENDPOINTS (comma list, as the apiserver's), STALL_S (give up when nothing moved for so long), IDLE_S (the same, where nothing is under way either), NETWORK (1: nodes become Ready).
# MAINTENANCE (names as above, to be cordoned; may be unset), ADDONS (words, those of the user's that are wanted; may be unset).
# shellcheck source=membership.sh disable=SC2154 # here: the folder of run.sh
source "$here/membership.sh"
# shellcheck source=addon-list.sh
source "$here/addon-list.sh"

# Wanted nodes that are not as wanted, one a line: "busy", "idle" (nothing is under way there) or "failed", then the name with the reason.
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
        else if (index(failed[name], want[name] " ") == 1) say("failed", name, "failed at " substr(failed[name], length(want[name]) + 2))
        else if (applied[name] != want[name] && begun[name] != "") say("busy", name, "has begun to apply this configuration")
        else if (applied[name] != want[name]) say(applied[name] == "" ? "busy" : "idle", name, "has not applied this configuration" (silent ? ", and gives no sign of life" : ""))
        else if (ready[name] != "True" && network == 1) say(silent ? "idle" : "busy", name, silent ? "gives no sign of life" : "not Ready")
      }
    }' <(wanted_table) <(printf '%s\n' "$have") | sort
}

wait_for_nodes() {
  local left count failures known=unread fewest="" since=$SECONDS limit
  while true; do
    left=$(missing)
    if [[ -z $left ]]; then return; fi
    failures=$(sed -n 's/^failed //p' <<<"$left")
    if [[ $left != "$NO_ANSWER" ]]; then
      # What stands there at first may be of an earlier update, and its retry has not begun yet: only news ends the wait at once.
      if [[ $known == unread ]]; then known=$failures; fi
      failures=$(comm -13 <(sort <<<"$known") <(sort <<<"$failures"))
      if [[ -n $failures ]]; then
        die "$(listed "$failures")" "mend what the failed command above names, then run pulumi up again"
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
give_up() { # give_up MISSING SECONDS
  local todo="see the failure of that node above, or journalctl -u kubelet -u containerd there; then run pulumi up again; if nothing failed there, raise converge.generation first"
  if [[ $'\n'$1 != *$'\n'busy* ]]; then
    todo="see the failure of that node above; a machine that cannot be reached has to be switched on, or taken out of the config; then run pulumi up again"
  fi
  die "$(wc -l <<<"$1") node(s) not as wanted, and nothing moved for $2 s: $(listed "$(cut -d' ' -f2- <<<"$1")")" "$todo"
}

# Callers take its output into a variable: where a loop reads it straight, an API that does not answer would count as "none".
unwanted_nodes() {
  local have
  have=$(cluster_table)
  comm -13 <(wanted_table | cut -d' ' -f1) <(cut -d'|' -f1 <<<"$have")
}

# A node that an earlier run began to retire, and that is wanted again.
keep_nodes() {
  local name leaving wanted
  wanted=$(wanted_table)
  leaving=$(kubectl_admin get nodes -o 'jsonpath={range .items[*]}{.metadata.name}{" "}{.metadata.annotations.kube-ha\.io/leaving}{"\n"}{end}' | awk '$2 == "true" {print $1}')
  for name in $leaving; do
    if [[ $'\n'$wanted == *$'\n'"$name "* ]]; then
      kubectl_admin uncordon "$name" >/dev/null
      kubectl_admin annotate node "$name" kube-ha.io/leaving- >/dev/null
      changes=$((changes + 1))
    fi
  done
}

# All are cordoned before one is drained: what it gives up must not go to the next. And all are drained before a member leaves: the kubelet of
# a leaving master that talks to the apiserver beside a removed member would not hear of an eviction for over a minute.
drain_nodes() {
  local name names
  names=$(unwanted_nodes)
  for name in $names; do
    kubectl_admin annotate --overwrite node "$name" kube-ha.io/leaving=true >/dev/null
    kubectl_admin cordon "$name" >/dev/null
  done
  for name in $names; do
    drain_node "$name"
  done
}

# A removal that was done and then taken back leaves a member out.
expect_members() {
  local member rows
  rows=$(etcd_local member list -w simple)
  for member in $MEMBERS; do
    awk -F', ' -v url="https://${member#*=}:2380" '$4 == url && $2 == "started" && $6 == "false" {found = 1} END {exit !found}' <<<"$rows" ||
      die "$member is no voting etcd member" "raise converge.generation and run pulumi up again: it joins anew"
  done
}

# Members that are not wanted, lines "id name client-URL" (- for what is not known). Those that do not answer come first: they only weigh on
# the quorum of the others.
leaving_members() {
  local member wanted=" " rows id name client
  for member in $MEMBERS; do wanted+="https://${member#*=}:2380 "; done
  rows=$(etcd_local member list -w simple)
  awk -F', ' -v wanted="$wanted" '!index(wanted, " " $4 " ") {print $1, ($3 == "" ? "-" : $3), ($5 == "" ? "-" : $5)}' <<<"$rows" |
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
  for name in $names; do
    kubectl_admin delete node "$name" >/dev/null
  done
}

# Authoritative for what we once set (remembered on the Node), silent about what others set.
mark_nodes() {
  local names words name labels taints rows
  local -A set_last=()
  rows=$(kubectl_admin get nodes -o 'jsonpath={range .items[*]}{.metadata.name}{"|"}{.metadata.annotations.kube-ha\.io/labels}{"|"}{.metadata.annotations.kube-ha\.io/taints}{"\n"}{end}')
  while IFS='|' read -r name labels taints; do
    set_last["labels $name"]=$labels
    set_last["taints $name"]=$taints
  done <<<"$rows"
  while IFS=$'\t' read -r names words; do
    for name in $(expand "$names"); do mark_node labels label "$name" "$words" "${set_last["labels $name"]:-}"; done
  done <<<"$LABELS"
  while IFS=$'\t' read -r names words; do
    for name in $(expand "$names"); do mark_node taints taint "$name" "$words" "${set_last["taints $name"]:-}"; done
  done <<<"$TAINTS"
}
mark_node() { # mark_node KIND VERB NODE WORDS BEFORE: both "key=value" or "key=value:effect" words, BEFORE what was set last
  local kind=$1 verb=$2 name=$3 words=$4 before=$5 word key keys=" " drop=()
  if [[ $before == "${words:--}" ]]; then return; fi
  for word in $words; do keys+="$(key_of "$kind" "$word") "; done
  for word in $before; do
    key=$(key_of "$kind" "$word")
    if [[ $word != - && $keys != *" $key "* ]]; then drop+=("$key-"); fi
  done
  if [[ -n $before ]]; then
    # Both, until it is done: whatever a cut-off run has set is known to the next one, a revert too.
    kubectl_admin annotate --overwrite node "$name" "kube-ha.io/$kind=$before $words" >/dev/null
  fi
  if [[ -n $words || ${#drop[@]} != 0 ]]; then
    # shellcheck disable=SC2086 # words are words
    kubectl_admin "$verb" node "$name" --overwrite $words "${drop[@]}" >/dev/null
  fi
  kubectl_admin annotate --overwrite node "$name" "kube-ha.io/$kind=${words:--}" >/dev/null
  changes=$((changes + 1))
}
key_of() { # key_of KIND WORD: what stands before the - in a removal
  if [[ $1 == labels ]]; then printf '%s' "${2%%=*}"; else printf '%s' "${2%%=*}:${2##*:}"; fi
}

# Nodes in maintenance take no new pods. One that an administrator had cordoned before stays so afterwards.
maintain_nodes() {
  local rows wanted resting name mark cordoned
  resting=$(expand "${MAINTENANCE:-}")
  wanted=$(wanted_table)
  rows=$(kubectl_admin get nodes -o 'jsonpath={range .items[*]}{.metadata.name}{"|"}{.metadata.annotations.kube-ha\.io/maintenance}{"|"}{.spec.unschedulable}{"\n"}{end}')
  while IFS='|' read -r name mark cordoned; do
    if [[ -n $name && $'\n'$resting$'\n' == *$'\n'"$name"$'\n'* ]]; then
      if [[ -z $mark ]]; then mark_maintenance "$name" "${cordoned:-false}"; fi
      if [[ $cordoned != true ]]; then kubectl_admin cordon "$name" >/dev/null; fi
    elif [[ -n $mark && $'\n'$wanted == *$'\n'"$name "* ]]; then
      # The mark goes last: a run that was cut off uncordons again.
      if [[ $mark != cordoned-before ]]; then kubectl_admin uncordon "$name" >/dev/null; fi
      kubectl_admin annotate node "$name" kube-ha.io/maintenance- >/dev/null
      changes=$((changes + 1))
    fi
  done <<<"$rows"
}
mark_maintenance() { # mark_maintenance NODE CORDONED
  local mark=true
  if [[ $2 == true ]]; then mark="cordoned-before"; fi
  kubectl_admin annotate node "$1" "kube-ha.io/maintenance=$mark" >/dev/null
  changes=$((changes + 1))
}

main() {
  own
  wait_for_nodes
  expect_members
  mark_nodes
  keep_nodes
  maintain_nodes
  drain_nodes
  retire_members
  delete_nodes
  # shellcheck disable=SC2086 # words are words
  sweep_addons ${ADDONS:-}
  finish
}
