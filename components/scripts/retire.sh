# shellcheck shell=bash
# Takes dead nodes, and those that are recreated, out of the cluster before anything else happens: the virtual IP given
# up, their pods evicted if they still answer, their etcd members removed while the remaining nodes have a quorum of
# their own, their Nodes deleted. Runs on a master that stays. Who was taken out to be recreated is remembered in the
# cluster until the gate passes, so that a later try of the same update does not take out the new one. Who goes may be a
# machine whose etcd is a cluster of its own, with an API server that answers: nothing here asks through a load
# balancer. Variables: none while nobody goes; else INCARNATIONS (words "name=generation:state"), GOING_MEMBERS (words
#   "name=address" of those with etcd), MEMBERS, ETCD_ENDPOINTS, ADDRESS (of this master).
# shellcheck source=etcdctl.sh disable=SC2154 # here: the folder of run.sh
source "$here/etcdctl.sh"
# shellcheck source=membership.sh disable=SC2154 # here: the folder of run.sh
source "$here/membership.sh"
# shellcheck source=cluster-reader.sh
source "$here/cluster-reader.sh"
# shellcheck source=hooks.sh disable=SC2154
source "$here/hooks.sh"
# shellcheck source=admin.sh disable=SC2154
source "$here/admin.sh"
# shellcheck source=etcd-identity.sh
source "$here/etcd-identity.sh"

# The API server of this machine, once it is proved that the etcd which it asks is of our cluster.
kubectl_admin() {
  kubectl --kubeconfig /etc/kubernetes/admin.conf --server "https://$ADDRESS:6443" --request-timeout 10s "$@"
}

take_out() {
  local word name going=()
  expect_quorum
  know_cluster
  wait_for 60 "API answering at https://$ADDRESS:6443, with etcd in order" kubectl_admin get --raw /readyz
  for word in $INCARNATIONS; do
    # Nobody new stands where a dead one stood.
    if [[ $word == *:lost || $word == *:compromised || $(taken_out "${word%%=*}") != "${word#*=}" ]]; then
      going+=("$word")
    fi
  done
  hand_over "${going[@]%%=*}"
  for word in "${going[@]}"; do
    # Who has a machine in his hands may answer for it forever.
    if [[ $word != *:compromised ]]; then leave_pods "${word%%=*}" "${word##*:}"; fi
  done
  for word in "${going[@]}"; do
    name=${word%%=*}
    take_out_member "$name"
    tell_hook beforeRelease "$name" "${word##*:}"
    kubectl_admin delete --ignore-not-found -- node "$name" >/dev/null
    remember_taken_out "$name" "${word#*=}"
    log "$name is taken out"
    changes=$((changes + 1))
  done
}
taken_out() {
  kubectl_admin -n kube-system get configmap kube-ha-incarnations --ignore-not-found -o "jsonpath={.data.$1}"
}
remember_taken_out() { # remember_taken_out NAME INCARNATION; each name is a field of its own, so the others stay
  local map='{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"kube-system","name":"kube-ha-incarnations"}'
  map+=",\"data\":{\"$1\":\"$2\"}}"
  kubectl_admin apply --server-side --force-conflicts --field-manager "kube-ha-$1" -f - >/dev/null <<<"$map"
}

# Load balancers give up the virtual IP by that, while those that take it hear their last word; without it the address
# would be missed for seconds.
hand_over() { # hand_over NODE...
  local name holders waits=""
  holders=$(kubectl_admin -n kube-system get configmap kube-ha-vip-holders --ignore-not-found -o 'jsonpath={.data}')
  for name in "$@"; do
    if [[ $holders != *"\"$name\":"* ]]; then continue; fi
    kubectl_admin -n kube-system patch configmap kube-ha-vip-holders --type merge \
      -p "{\"data\":{\"$name\":null}}" >/dev/null
    log "$name is no longer listed, and gives up the virtual IP if it has it"
    waits=1
  done
  if [[ $waits ]]; then sleep 4; fi # keepalived there asks every 2 s
}

# A list is a read with a quorum behind it. Without one nobody can be taken out, and waiting brings none back.
expect_quorum() {
  local end=$((SECONDS + 60)) word member names="" up="" down=""
  until etcd_local member list >/dev/null 2>&1; do
    if ((SECONDS >= end)); then
      for word in $INCARNATIONS; do names+=" ${word%%=*}"; done
      for member in $MEMBERS; do
        if etcdctl_at "https://${member#*=}:2379" endpoint status >/dev/null 2>&1; then
          up+=" ${member%%=*}"
        else
          down+=" ${member%%=*}"
        fi
      done
      die "cannot remove$names: etcd has no quorum (healthy:${up:- none}; unreachable:${down:- none})" \
        "start members that have data until a majority answers (journalctl -u etcd there), then run pulumi up" \
        "again; if their data is lost, restore a snapshot"
    fi
    sleep 2
  done
}

# Pods of a machine that still answers end in order; of a dead one they go with its Node.
leave_pods() { # leave_pods NODE STATE
  local status
  status=$(readiness "$1")
  if [[ -z $status ]]; then return; fi
  kubectl_admin annotate --overwrite -- node "$1" kube-ha.io/leaving=true >/dev/null
  kubectl_admin cordon -- "$1" >/dev/null
  if [[ $status != "$1|True" ]]; then return; fi
  tell_hook beforeDrain "$1" "$2"
  log "evicting node $1"
  if ! evict "$1" && still_ready "$1"; then cannot_be_drained "$1"; fi
}
still_ready() { [[ $(readiness "$1") == "$1|True" ]]; } # it may have died only now

take_out_member() { # take_out_member NAME
  local word address="" found id client rows
  for word in $GOING_MEMBERS; do
    if [[ ${word%%=*} == "$1" ]]; then address=${word#*=}; fi
  done
  rows=$(etcd_local member list -w simple)
  # By its name; one that died before it had started has none, only its address.
  found=$(awk -F', ' -v name="$1" -v url="https://$address:2380" \
    '$3 == name || ($3 == "" && $4 == url) {print $1, ($5 == "" ? "-" : $5)}' <<<"$rows")
  while read -r id client; do
    if [[ -z $id ]]; then continue; fi
    quorum_without "$id" "$1"
    retire_member "$id" "$1" "$client"
  done <<<"$found"
}

main() {
  own
  renew_admin
  if [[ -n ${INCARNATIONS:-} ]]; then take_out; fi
  finish
}
