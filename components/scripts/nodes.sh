# shellcheck shell=bash
# Makes the list of Nodes what the config says, and waits for it: wanted ones registered with the wanted generation applied, Ready, labelled and tainted;
# others evicted, their etcd member removed by the survivors, and deleted, before their machines are touched. Runs on a master.
# Values: WANTED (lines "pool applied names", names as a-[1-3],b-[2-8/3]), LABELS (lines "names<TAB>key=value ..."), TAINTS (lines "names<TAB>key=value:effect ..."),
#   MEMBERS (words "name=address", wanted etcd members), ETCD_ENDPOINTS (comma list, as the apiserver's), STALL_S (give up when nothing moved for so long), IDLE_S (the same, where nothing is under way either), NETWORK (1: nodes become Ready).
expand() { # expand a-[1-3],b-[2-8/3],c: one name a line
  local part prefix from to step
  for part in ${1//,/ }; do
    if [[ $part =~ ^(.*)\[([0-9]+)-([0-9]+)(/([0-9]+))?\]$ ]]; then
      prefix=${BASH_REMATCH[1]} from=${BASH_REMATCH[2]} to=${BASH_REMATCH[3]} step=${BASH_REMATCH[5]:-1}
      seq -f "$prefix%.0f" "$from" "$step" "$to"
    else
      printf '%s\n' "$part"
    fi
  done
}

wanted_table() {
  local pool applied names
  while read -r pool applied names; do
    if [[ -n $pool ]]; then expand "$names" | sed "s/\$/ $applied/"; fi
  done <<<"$WANTED" | sort
}

# name|applied|Ready|begun|failed
cluster_table() {
  local mark='{"|"}{.metadata.annotations.kube-ha\.io/'
  kubectl_admin get nodes -o "jsonpath={range .items[*]}{.metadata.name}${mark}applied}{\"|\"}{.status.conditions[?(@.type==\"Ready\")].status}${mark}begun}${mark}failed}{\"\n\"}{end}" | sort -t '|' -k 1,1
}

NO_ANSWER="busy the API (does not answer)"
# Wanted nodes that are not as wanted, one a line: "busy", "idle" (nothing is under way there) or "failed", then the name with the reason.
missing() {
  local have
  have=$(cluster_table) || {
    echo "$NO_ANSWER"
    return
  }
  awk -F'|' -v network="$NETWORK" '
    NR == FNR {split($0, row, " "); want[row[1]] = row[2]; next}
    $1 in want {there[$1] = 1; applied[$1] = $2; ready[$1] = $3; begun[$1] = $4; failed[$1] = $5}
    function say(kind, name, reason) {print kind, name " (" reason ")"}
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
listed() { head -n 5 <<<"$1" | paste -sd' '; } # listed LINES: the first ones on one

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
    log "evicting node $name"
    # --force: pods without a controller would stay for ever on a machine that is about to go. Of a dead one no kubelet ever says that a
    # pod has ended: it is waited for no longer than a minute beyond its grace period.
    kubectl_admin drain "$name" --ignore-daemonsets --delete-emptydir-data --force --skip-wait-for-delete-timeout 60 --timeout 300s >"$STATE/drain.log" 2>&1 || die "node $name cannot be drained: $(tail -n 3 "$STATE/drain.log")" "see which PodDisruptionBudget blocks (kubectl get pdb -A), make room, then run pulumi up again"
    changes=$((changes + 1))
  done
}

etcdctl_at() { # etcdctl_at ENDPOINTS ARGUMENT...
  local endpoints=$1
  shift
  timeout 15 etcdctl --endpoints "$endpoints" --cacert /etc/kubernetes/pki/etcd/ca.crt --cert /etc/kubernetes/pki/apiserver-etcd-client.crt --key /etc/kubernetes/pki/apiserver-etcd-client.key --command-timeout 8s "$@"
}
etcd_local() { etcdctl_at "$ETCD_ENDPOINTS" "$@"; }

# healthy_count ENDPOINTS: how many of these answer a quorum read
healthy_count() {
  # 0 is an answer, grep's status with it
  etcdctl_at "$1" endpoint health 2>&1 | grep -c 'is healthy' || true
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
  local id name client members voters healthy rest
  members=$(leaving_members)
  while read -r id name client; do
    if [[ -z $id ]]; then continue; fi
    rest=$(etcd_local member list -w simple | awk -F', ' -v id="$id" '$1 != id && $6 == "false" {printf "%s%s", s, $5; s = ","}')
    voters=$(tr ',' '\n' <<<"$rest" | wc -l)
    healthy=$(healthy_count "$rest")
    ((healthy >= voters / 2 + 1)) || die "etcd member $name cannot leave: of the $voters that would stay ($rest) only $healthy are healthy" "repair those first"
    retire_member "$id" "$name" "$client"
  done <<<"$members"
}
retire_member() { # retire_member ID NAME CLIENT-URL
  local address=${3#https://}
  address=${address%:*}
  divert_from "$address"
  hand_over_leadership "$1" "$3"
  log "removing etcd member $2"
  wait_for 60 "etcd member $2 removed" removed "$1"
  wait_for 60 "$address gone from the Service kubernetes" out_of_service "$address"
  changes=$((changes + 1))
}
removed() { # removed ID: the answer to an earlier try may have got lost
  local rows
  if etcd_local member remove "$1"; then return; fi
  rows=$(etcd_local member list -w simple) || return 1
  [[ $'\n'$rows != *$'\n'"$1, "* ]]
}

# When a leader is removed the others have none until they have elected one; handed over, they always have.
hand_over_leadership() { # hand_over_leadership ID CLIENT-URL
  local status leader member heir
  status=$(etcd_local endpoint status -w fields 2>/dev/null || true) # any that is down makes it fail; the others have told
  leader=$(awk -F' : ' '$1 == "\"Leader\"" && !seen++ {print $2}' <<<"$status")
  # bash converts the id: it has 64 bits, awk's numbers have fewer.
  if [[ $(printf %x "${leader:-0}") != "$1" ]]; then return; fi
  for member in $MEMBERS; do
    status=$(etcdctl_at "https://${member#*=}:2379" endpoint status -w fields 2>/dev/null || true) # one that is down is no heir
    heir=$(awk -F' : ' '$1 == "\"MemberID\"" {print $2}' <<<"$status")
    if [[ -n $heir ]] && etcdctl_at "$2" move-leader "$(printf %x "$heir")" >/dev/null 2>&1; then return; fi
  done
  log "etcd elects a new leader when $2 is gone, which takes about a second"
}

# A master whose own member leaves can serve no longer, for its apiserver asks that member alone: pods are sent elsewhere before. It puts itself
# back every 10 s while it can, so this is looked at twice; HAProxies have left it long ago.
divert_from() { # divert_from ADDRESS
  local answer
  for _ in 1 2 3; do
    answer=$(out_of_service "$1" || true) # it will be asked for again
    if [[ -z $answer ]]; then return; fi
    sleep 2 # the nodes' kube-proxies follow within a second; requests under way end
  done
}

# That the Service `kubernetes` sends nobody to that apiserver; says so if it did until now. Left alone, its entry would outlive it by up to
# 25 s: the lease that it keeps in etcd, and the next look of the others at these.
out_of_service() { # out_of_service ADDRESS
  local listed place
  if [[ ,$ETCD_ENDPOINTS, != *,https://127.0.0.1:* || $1 == - ]]; then return; fi
  etcd_local del "/registry/masterleases/$1" >/dev/null || return 1
  listed=$(kubectl_admin -n default get endpointslice kubernetes -o 'jsonpath={range .endpoints[*]}{.addresses[0]}{"\n"}{end}') || return 1
  place=$(awk -v address="$1" '$1 == address {print NR - 1; exit}' <<<"$listed")
  if [[ -z $place ]]; then return; fi
  kubectl_admin -n default patch endpointslice kubernetes --type json \
    -p "[{\"op\":\"test\",\"path\":\"/endpoints/$place/addresses/0\",\"value\":\"$1\"},{\"op\":\"remove\",\"path\":\"/endpoints/$place\"}]"
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

main() {
  own
  if [[ ${STAGE:-last} == first ]]; then
    if [[ -n $GOING ]]; then die "taking out $GOING first is not there yet" "leave state and generation as they were"; fi
    finish
    return
  fi
  wait_for_nodes
  expect_members
  mark_nodes
  keep_nodes
  drain_nodes
  retire_members
  delete_nodes
  finish
}
