# shellcheck shell=bash
# How a node is taken out of the cluster by the remaining nodes, and how nodes stand: what nodes.sh, retire.sh and
# wave.sh share. Only definitions; they source it. What others write into the API comes by cluster-reader.sh, which they
# source too.
# Variables: WANTED (lines "pool applied names", names as a-[1-3],b-[2-8/3]), MEMBERS (words "name=address", wanted etcd
#   members), ETCD_ENDPOINTS (comma list, as the apiserver's).
wanted_table() {
  local pool applied names
  while read -r pool applied names; do
    if [[ -n $pool ]]; then expand "$names" | sed "s/\$/ $applied/"; fi
  done <<<"$WANTED" | sort
}

# name|applied|Ready|begun|failed
cluster_table() { read_nodes applied ready begun failed; }

# shellcheck disable=SC2034 # read by those who source this
NO_ANSWER="busy the API (does not answer)"

# How awk reads the table of what is wanted, which may be empty, then the cluster's: want, there, applied, ready, begun
# and failed by name. What it ends with is the phase's.
# shellcheck disable=SC2016,SC2034 # awk's fields; read by those who source this
NODE_ROWS='
  FILENAME == ARGV[1] {split($0, row, " "); want[row[1]] = row[2]; next}
  $1 in want {there[$1] = 1; applied[$1] = $2; ready[$1] = $3; begun[$1] = $4; failed[$1] = $5}
  function say(kind, name, reason) {print kind, name " (" reason ")"}'

first_rows() { head -n 5 <<<"$1" | paste -sd' '; } # first_rows LINES: the first ones on one

drain_node() { # drain_node NODE
  # Of a dead one nobody would say that a pod has ended, and a PodDisruptionBudget would keep it forever.
  if is_unresponsive "$1"; then
    log "node $1 is unresponsive: its pods go with its Node"
    return
  fi
  tell_hook beforeDrain "$1" "leaves"
  log "evicting node $1"
  if ! evict "$1" && ! is_unresponsive "$1"; then cannot_be_drained "$1"; fi # it may have died only now
  changes=$((changes + 1))
}
is_unresponsive() { [[ $(readiness "$1") == "$1|Unknown" ]]; }
# --force: pods without a controller would stay forever on a machine that is about to go. Of a dead one no kubelet ever
# says that a pod has ended: it is waited for no longer than a minute beyond its grace period.
evict() {
  kubectl_admin drain --ignore-daemonsets --delete-emptydir-data --force --skip-wait-for-delete-timeout 60 \
    --timeout 300s -- "$1" >"$STATE/drain.log" 2>&1
}
cannot_be_drained() {
  die "node $1 cannot be drained: $(tail -n 3 "$STATE/drain.log")" \
    "see which PodDisruptionBudget blocks (kubectl get pdb -A), make room, then run pulumi up again"
}

# A master may have no member of its own: it asks as its API server does.
# shellcheck disable=SC2034 # read by etcdctl_at
{
  CLIENT_CA=/etc/kubernetes/pki/etcd/ca.crt
  CLIENT_CERT=/etc/kubernetes/pki/apiserver-etcd-client.crt
  CLIENT_KEY=/etc/kubernetes/pki/apiserver-etcd-client.key
}
etcd_local() { etcdctl_at "$ETCD_ENDPOINTS" "$@"; }

# From here on only members of the one cluster that is ours are asked, and counted (OURS is its ID).
know_cluster() {
  local rows endpoint id kept=""
  rows=$(identities)
  if [[ -z $rows ]]; then rows=$(of_endpoints); fi # etcd may be about to move to machines that have none yet
  read -r OURS _ < <(our_cluster "$rows") ||
    die "which etcd is this cluster's cannot be told: $(told_clusters "$rows")" \
      "stop etcd on the machines that are not (systemctl stop etcd), then run pulumi up again"
  while read -r endpoint id _; do
    if [[ $id == "$OURS" ]]; then kept+="${kept:+,}https://$endpoint:2379"; fi
  done < <(of_endpoints)
  [[ -n $kept ]] ||
    die "etcd at $ETCD_ENDPOINTS, which this master asks, belongs to another cluster: $(told_clusters "$rows")" \
      "stop etcd on $NODE (systemctl stop etcd), raise nodes.$NODE.generation, and run pulumi up again:" \
      "it joins the other members"
  ETCD_ENDPOINTS=$kept
}
of_endpoints() { # as identities, of those that API servers here ask
  local endpoint MEMBERS=""
  for endpoint in ${ETCD_ENDPOINTS//,/ }; do
    endpoint=${endpoint#https://}
    MEMBERS+=" =${endpoint%:2379}"
  done
  identities
}

of_another_cluster() { # of_another_cluster ADDRESS: in words, where it is
  local id epoch mark
  read -r id epoch mark < <(identity_at "$1") || return 0
  if [[ $id == "$OURS" ]]; then return; fi
  printf ': its etcd is another cluster (%x, epoch %s)%s\n' "$id" "$epoch" \
    "$([[ $mark != none ]] || echo ', which began empty')"
}

# healthy_count ENDPOINTS: how many of these are members of our cluster that answer with a quorum behind them
healthy_count() {
  local endpoint count=0
  if [[ -z ${OURS:-} ]]; then know_cluster; fi
  for endpoint in ${1//,/ }; do
    endpoint=${endpoint#https://}
    if same_cluster "$OURS" "${endpoint%:2379}"; then count=$((count + 1)); fi
  done
  printf '%d\n' "$count"
}

quorum_without() { # quorum_without ID NAME: asked right before, for each
  local rest voters healthy rows
  rows=$(etcd_local member list -w simple)
  rest=$(awk -F', ' -v id="$1" '$1 != id && $6 == "false" {print}' <<<"$rows")
  [[ -n $rest ]] ||
    die "etcd member $2 cannot leave: it is the last voter, and holds all data of the cluster" \
      "add another etcd member first"
  voters=$(wc -l <<<"$rest")
  # A voter that has never started has no client URL, and counts all the same.
  rest=$(awk -F', ' '$5 != "" {printf "%s%s", s, $5; s = ","}' <<<"$rest")
  healthy=$(healthy_count "$rest")
  ((healthy >= voters / 2 + 1)) ||
    die "etcd member $2 cannot leave: of the $voters that would stay ($rest) only $healthy are healthy" \
      "repair those first"
}
retire_member() { # retire_member ID NAME CLIENT-URL
  local address=${3#https://}
  address=${address%:*}
  divert_from "$address"
  hand_over_leadership "$1" "$3"
  log "removing etcd member $2"
  wait_for 60 "etcd member $2 removed" member_removed "$1"
  wait_for 60 "$address gone from the Service kubernetes" out_of_service "$address"
  changes=$((changes + 1))
}
member_removed() { # member_removed ID: the answer to an earlier try may have got lost
  local rows
  if etcd_local member remove "$1"; then return; fi
  rows=$(etcd_local member list -w simple) || return 1
  [[ $'\n'$rows != *$'\n'"$1, "* ]]
}

# When a leader is removed the others have none until they have elected one; handed over, they always have.
hand_over_leadership() { # hand_over_leadership ID CLIENT-URL
  local status leader member successor
  if [[ -z ${OURS:-} ]]; then know_cluster; fi
  # any that is down makes it fail; the others have told
  status=$(etcd_local endpoint status -w fields 2>/dev/null || true)
  leader=$(awk -F' : ' '$1 == "\"Leader\"" && !seen++ {print $2}' <<<"$status")
  # bash converts the id: it has 64 bits, awk's numbers have fewer.
  if [[ $(printf %x "${leader:-0}") != "$1" ]]; then return; fi
  for member in $MEMBERS; do
    # one that is down is not a successor, nor is one of another cluster
    if ! same_cluster "$OURS" "${member#*=}"; then continue; fi
    status=$(etcdctl_at "https://${member#*=}:2379" endpoint status -w fields 2>/dev/null || true)
    successor=$(awk -F' : ' '$1 == "\"MemberID\"" {print $2}' <<<"$status")
    # One that is recreated is wanted, and leaves all the same.
    if [[ -n $successor && $successor != "$leader" ]] &&
      etcdctl_at "$2" move-leader "$(printf %x "$successor")" >/dev/null 2>&1; then
      sleep 2 # who was refused while it moved has asked again when the member goes
      return
    fi
  done
  log "etcd elects a new leader when $2 is gone, which takes about a second"
}

# A master whose own member leaves can serve no longer, for its apiserver asks that member alone: pods are sent
# elsewhere before. It puts itself back every 10 s while it can, so this is looked at twice; HAProxies have left it long
# ago.
divert_from() { # divert_from ADDRESS
  local answer
  for _ in 1 2 3; do
    answer=$(out_of_service "$1" || true) # it will be asked for again
    if [[ -z $answer ]]; then return; fi
    sleep 2 # the nodes' kube-proxies follow within a second; requests under way end
  done
}

# That the Service `kubernetes` sends nobody to that apiserver; says so if it did until now. Left alone, its entry would
# outlive it by up to 25 s: the lease that it keeps in etcd, and the next look of the others at these.
out_of_service() { # out_of_service ADDRESS
  local listed place
  if [[ ,$ETCD_ENDPOINTS, != *,https://127.0.0.1:* || $1 == - ]]; then return; fi
  etcd_local del "/registry/masterleases/$1" >/dev/null || return 1
  listed=$(kubectl_admin -n default get endpointslice kubernetes \
    -o 'jsonpath={range .endpoints[*]}{.addresses[0]}{"\n"}{end}') || return 1
  place=$(awk -v address="$1" '$1 == address {print "/endpoints/" (NR - 1); exit}' <<<"$listed")
  if [[ -z $place ]]; then return; fi
  kubectl_admin -n default patch endpointslice kubernetes --type json \
    -p "[{\"op\":\"test\",\"path\":\"$place/addresses/0\",\"value\":\"$1\"},{\"op\":\"remove\",\"path\":\"$place\"}]"
}
