# shellcheck shell=bash
# Ends everything of kube-ha on the machine of a decommissioned node, over boots too, and takes its identity away.
# Survivors have evicted it, removed its etcd member and deleted its Node. The machine stays this node's: packages,
# programs, images, keys of its PKI and etcd's data are kept. It comes back by the phases of a new node, each of which
# makes again what is missing here.
# Variables: those of every phase.
# shellcheck source=etcdctl.sh disable=SC2154 # here: the folder of run.sh
source "$here/etcdctl.sh"
# shellcheck source=wipe.sh disable=SC2154 # here: the folder of run.sh
source "$here/wipe.sh"

main() {
  own
  refuse_voter
  if ! nothing_runs >/dev/null; then
    log "stopping everything of this node"
    changes=$((changes + 1))
  fi
  stand_down
  forget_identity
  finish
}
