# shellcheck shell=bash
# Takes dead nodes, and those that are made anew, out of the cluster before anything else happens: their pods evicted if they still answer, their
# etcd members removed while those that stay have a quorum of their own, their Nodes deleted. Runs on a master that stays. What has been taken out is
# remembered in the cluster by incarnation, so that a later run does not take out the new one.
# Values: INCARNATIONS (words "name=generation:state"; none: nothing to do), GOING_MEMBERS (words "name=address" of those with etcd), MEMBERS, ETCD_ENDPOINTS.
# shellcheck source=membership.sh disable=SC2154 # here: the folder of run.sh
source "$here/membership.sh"

take_out() {
  local word name going=()
  wait_for 60 "API answering, which needs a quorum of etcd (members that stay: $MEMBERS); without one, start members that have data, or restore a snapshot" kubectl_admin get --raw /readyz
  for word in $INCARNATIONS; do
    if [[ $(taken_out "${word%%=*}") != "${word#*=}" ]]; then going+=("$word"); fi
  done
  for word in "${going[@]}"; do leave_pods "${word%%=*}"; done
  for word in "${going[@]}"; do
    name=${word%%=*}
    take_out_member "$name"
    kubectl_admin delete node "$name" --ignore-not-found >/dev/null
    remember_taken_out "$name" "${word#*=}"
    log "$name is taken out"
    changes=$((changes + 1))
  done
}
taken_out() { kubectl_admin -n kube-system get configmap kube-ha-incarnations --ignore-not-found -o "jsonpath={.data.$1}"; }
remember_taken_out() { # remember_taken_out NAME INCARNATION; each name is a field of its own, so the others stay
  kubectl_admin apply --server-side --force-conflicts --field-manager "kube-ha-$1" -f - >/dev/null <<<"{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"namespace\":\"kube-system\",\"name\":\"kube-ha-incarnations\"},\"data\":{\"$1\":\"$2\"}}"
}

# Pods of a machine that still answers end in order; of a dead one they go with its Node.
leave_pods() { # leave_pods NODE
  local status
  status=$(kubectl_admin get node "$1" --ignore-not-found -o 'jsonpath={.metadata.name} {.status.conditions[?(@.type=="Ready")].status}')
  if [[ -z ${status// /} ]]; then return; fi
  kubectl_admin annotate --overwrite node "$1" kube-ha.io/leaving=true >/dev/null
  kubectl_admin cordon "$1" >/dev/null
  if [[ $status == *True ]]; then drain_node "$1"; fi
}

take_out_member() { # take_out_member NAME
  local word address="" row id client rows
  for word in $GOING_MEMBERS; do
    if [[ ${word%%=*} == "$1" ]]; then address=${word#*=}; fi
  done
  if [[ -z $address ]]; then return; fi
  rows=$(etcd_local member list -w simple)
  # By its name; one that died before it had started has none, only its address.
  row=$(awk -F', ' -v name="$1" -v url="https://$address:2380" '$3 == name || ($3 == "" && $4 == url) {print; exit}' <<<"$rows")
  if [[ -z $row ]]; then return; fi
  id=${row%%,*}
  client=$(awk -F', ' '{print $5 == "" ? "-" : $5}' <<<"$row")
  quorum_without "$id" "$1"
  retire_member "$id" "$1" "$client"
}

main() {
  own
  if [[ -n $INCARNATIONS ]]; then take_out; fi
  finish
}
