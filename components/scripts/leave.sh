# shellcheck shell=bash
# Takes this machine out of its cluster for good: stops everything of ours and removes it. Membership was corrected by the
# survivors before; packages, users and SSH stay as they are. A machine owned by something else is not touched.
main() {
  if [[ ! -f $STATE/owner ]]; then
    log "nothing of this cluster is on this machine"
    return
  fi
  if [[ -f $STATE/owner && $(<"$STATE/owner") != "$CLUSTER $CLUSTER_ID $NODE" ]]; then
    die "this machine belongs to \"$(<"$STATE/owner")\", not to \"$CLUSTER $CLUSTER_ID $NODE\": nothing was removed" "release it where it belongs"
  fi
  lock
  trap - ERR
  set +e # every step is tried; what is already gone is fine; the end is checked below
  wipe
  verify_clean
}

wipe() {
  local unit netns link table tool
  for unit in kubelet etcd haproxy; do systemctl disable -q --now "$unit" 2>/dev/null; done
  # The containers outlive both kubelet and containerd: end them by their shims' cgroup while containerd can still tell.
  if systemctl is-active -q containerd; then
    ctr -n k8s.io tasks ls -q | xargs -r -n 1 timeout 20 ctr -n k8s.io tasks kill -s SIGKILL >/dev/null 2>&1
    sleep 1
    ctr -n k8s.io containers ls -q | xargs -r -n 1 timeout 20 ctr -n k8s.io containers rm >/dev/null 2>&1
  fi
  systemctl disable -q --now containerd 2>/dev/null
  pkill -9 -f '^/usr/local/bin/containerd-shim-runc-v2' 2>/dev/null
  awk '$2 ~ "^/(var/lib/kubelet|run/containerd|run/netns/cni)" {print $2}' /proc/self/mounts | sort -r | xargs -r -n 1 umount -l 2>/dev/null
  for netns in /run/netns/cni-*; do [[ -e $netns ]] && ip netns delete "${netns##*/}" 2>/dev/null; done
  for link in cni0 flannel.1; do ip link delete "$link" 2>/dev/null; done
  for table in "ip kube-proxy" "ip6 kube-proxy" "ip flannel-ipv4" "ip6 flannel-ipv6"; do
    # shellcheck disable=SC2086 # family and name are two words
    nft delete table $table 2>/dev/null
  done
  # kube-proxy and flannel in iptables mode.
  for tool in iptables ip6tables; do
    if $tool-save 2>/dev/null | grep -Eq 'KUBE-|FLANNEL-|CNI-'; then $tool-save | grep -vE 'KUBE-|FLANNEL-|CNI-' | $tool-restore; fi
  done
  rm -rf /etc/kubernetes /etc/kube-ha /etc/cni/net.d/* /var/lib/cni /var/log/kubernetes /var/log/pods /var/log/containers /run/flannel \
    /etc/systemd/system/{kubelet,containerd,etcd}.service /etc/systemd/system/{kubelet,containerd}.service.d /etc/containerd \
    /etc/sysctl.d/90-kube-ha.conf /etc/modules-load.d/kube-ha.conf /etc/haproxy/haproxy.cfg \
    /usr/local/bin/{kubelet,kubeadm,kubectl,etcd,etcdctl,etcdutl,containerd,containerd-shim-runc-v2,containerd-stress,ctr} /usr/local/sbin/runc /opt/cni/bin
  # The folders themselves may be mount points.
  # The owner's mark goes last of all: a leave that was cut off goes on.
  find /var/lib/kubelet /var/lib/containerd /var/lib/kube-ha -mindepth 1 ! -path "$STATE" ! -path "$STATE/owner" -delete 2>/dev/null
  systemctl daemon-reload
}

verify_clean() {
  local left
  left=$(find /var/lib/kubelet /var/lib/kube-ha -mindepth 1 ! -path "$STATE" ! -path "$STATE/owner" 2>/dev/null | head -3)
  if [[ -n $left ]] || pgrep -x 'etcd|kubelet|containerd' >/dev/null; then
    die "could not be cleaned; left: $left $(pgrep -lx 'etcd|kubelet|containerd' | xargs)" "reboot the machine, then run pulumi up again"
  fi
  rm -rf /usr/local/lib/kube-ha "$PWD/.kube-ha" "$STATE"
  log "left the cluster, machine is clean"
}
