# shellcheck shell=bash
# Makes sure that no etcd of kube-ha runs on this machine, which has no role etcd (any more): it runs after the
# remaining nodes have removed the member. Its data is kept beside, as of any member that was removed; the next one to
# be removed here takes its place.
# Variables: none of its own. Changes: what etcd-member.sh owns, once that has no business here.
# shellcheck source=etcdctl.sh disable=SC2154 # here: the folder of run.sh
source "$here/etcdctl.sh"
main() {
  local timer
  own
  if [[ -f /etc/systemd/system/etcd.service ]]; then
    # A member that still has its vote must not be stopped: the remaining nodes have not removed it.
    if etcd_has_data && still_votes; then
      die "etcd on this machine is still a member of its cluster" \
        "run pulumi up again: the list of nodes removes it first"
    fi
    systemctl disable -q --now etcd
    for timer in kube-ha-backup kube-ha-etcd-guard; do
      if [[ -f /etc/systemd/system/$timer.timer ]]; then systemctl disable -q --now "$timer.timer"; fi
      rm -f "/etc/systemd/system/$timer".{service,timer} "$STATE/$timer.timer.sum"
    done
    rm -f /etc/systemd/system/etcd.service "$STATE"/etcd.{service.sum,cluster,newest,refused}
    systemctl daemon-reload
    changes=$((changes + 1))
    log "stopped etcd, which is elsewhere now"
  fi
  set_aside_etcd
  # Keys of a member: kubeadm's own client certificate lies elsewhere.
  rm -rf /etc/kube-ha/etcd
  forget_keys /etc/kube-ha/etcd/
  finish
}
