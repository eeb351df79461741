# shellcheck shell=bash
# Makes sure that no etcd of ours runs on this machine, which has no role etcd (any more): it runs after those that stay have removed
# the member. Its data is kept beside, as of any member that was removed; the next one to be removed here takes its place.
# Values: none of its own. Owns: what etcd-member.sh owns, once that has no business here.
DATA=$HOME_DIR/etcd

main() {
  own
  if [[ -f /etc/systemd/system/etcd.service ]]; then
    # A member that still has its vote must not be stopped: those that stay have not removed it.
    if etcd_has_data && still_votes; then
      die "etcd on this machine is still a member of its cluster" "run pulumi up again: the list of nodes removes it first"
    fi
    systemctl disable -q --now etcd
    rm -f /etc/systemd/system/etcd.service "$STATE/etcd.service.sum"
    systemctl daemon-reload
    changes=$((changes + 1))
    log "stopped etcd, which is elsewhere now"
  fi
  if [[ -d $DATA/member ]]; then
    rm -rf "$DATA.removed"
    mkdir -m 700 "$DATA.removed"
    mv "$DATA/member" "$DATA.removed/"
  fi
  # Keys of a member: kubeadm's own client certificate lies elsewhere.
  rm -rf /etc/kube-ha/etcd
  finish
}

# A removed member stops by itself; one that answers with a list that holds it is none.
still_votes() {
  local rows
  rows=$(timeout 12 etcdctl --endpoints https://127.0.0.1:2379 --cacert /etc/kube-ha/etcd/ca.crt --cert /etc/kube-ha/etcd/client.crt --key /etc/kube-ha/etcd/client.key --command-timeout 5s member list -w simple 2>/dev/null) || return 1
  awk -F', ' -v name="$NODE" '$3 == name {found = 1} END {exit !found}' <<<"$rows"
}
