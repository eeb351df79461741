# shellcheck shell=bash
# Takes this machine out of its cluster for good, whichever incarnation of its node it is. Membership was corrected by
# the survivors before; packages, users and SSH stay as they are. A machine owned by something else is not touched.
# `run.sh leave` wipes: everything of kube-ha is stopped and removed, the machine is as it was found.
# `run.sh leave keep` stops and disables everything of kube-ha and takes away what makes the machine a node: keys,
# certificates, kubeconfigs, static pods, the owner's mark. Files stay: programs, units, images, logs, /var/lib/kubelet,
# and etcd's data in /var/lib/kube-ha/etcd.removed. Such a machine belongs to nobody, and may be adopted again, by
# another cluster too (mark: state/released);
# /usr/local/lib/kube-ha/leave wipes it.
# shellcheck source=etcdctl.sh disable=SC2154 # here: the folder of run.sh
source "$here/etcdctl.sh"
# shellcheck source=wipe.sh disable=SC2154 # here: the folder of run.sh
source "$here/wipe.sh"

main() {
  local want="$CLUSTER $CLUSTER_ID $NODE" is=""
  if [[ -s $STATE/owner ]]; then
    is=$(<"$STATE/owner")
  elif [[ -f $STATE/released && ${KEEP:-0} != 1 ]]; then
    is=$(<"$STATE/released")
  fi
  if [[ -z $is ]]; then
    log "nothing of this cluster is on this machine"
    return
  fi
  [[ $is == "$want" ]] ||
    die "this machine belongs to \"$is\", not to \"$want\": nothing was removed" "release it where it belongs"
  lock
  if [[ ${KEEP:-0} == 1 ]]; then
    keep "$want"
    return
  fi
  wipe
  rm -rf "$ROOT/usr/local/lib/kube-ha" "$PWD/.kube-ha" "$STATE"
  log "left the cluster, machine is clean"
}

keep() { # keep OWNER
  stand_down
  forget_identity
  set_aside_etcd
  # All keys of the cluster are in these two; what else is there comes again with the machine's next node.
  rm -rf "$ROOT"/etc/kubernetes "$ROOT"/etc/kube-ha "$ROOT"/var/lib/kubelet/pki \
    "$STATE"/{applied,incarnation,pki.sums,etcd.cluster,etcd.newest,etcd.refused}
  put 600 "$STATE/released" <<<"$1"
  rm -f "$STATE/owner" # last: cut off before, the next run continues
  log "left the cluster; files stay, nothing of them runs"
}
