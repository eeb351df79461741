# shellcheck shell=bash
# How a machine stops being a node: what leave.sh, decommission.sh and a new incarnation (node.sh) share. Only
# definitions; they source it.
ETCD_PORTS="2379 2380 2381"
PROXY_PORT=3446
# Of rules for iptables that are pod networks' or kube-proxy's.
RULES='KUBE-|FLANNEL-|CNI-|CILIUM_|cali-|cali:'
KUBERNETES_PORTS="3446 6443 10248 10249 10250 10256 10257 10259"

# On a machine with etcd alone, the container runtime and HAProxy are somebody else's, if there are any; on a load
# balancer the runtime is.
in_kubernetes() { [[ ! -e $STATE/load-balancer ]] && { [[ -f $STATE/containerd.artefact ]] || has_proxy; }; }
lone_proxy() { [[ -e $STATE/load-balancer ]] && has_proxy; }
has_proxy() { grep -qs kubernetes-api "$ROOT/etc/haproxy/haproxy.cfg"; }

# keepalived of kube-ha; another one is somebody else's, as is its address.
holds_vip() { grep -qs '^# kube-ha' "$ROOT/etc/keepalived/keepalived.conf"; }

has_ingress() { [[ -e $ROOT/etc/systemd/system/kube-ha-ingress.service ]]; }
has_firewall() { [[ -e $ROOT/etc/systemd/system/kube-ha-firewall.service ]]; }

# A member whose vote counts may not just vanish.
refuse_voter() {
  if still_votes; then
    die "etcd on this machine is still a voting member, so nothing was stopped" \
      "run pulumi up again: masters that stay remove the member first; if that does not help, raise converge.generation"
  fi
}

# stand_down: everything of kube-ha ends, as in a power cut, and stays so over a boot; files stay.
stand_down() {
  # shellcheck disable=SC2034 # read by die
  local HINT="reboot the machine, then run pulumi up again"
  end_everything
  wait_for 30 "everything of kube-ha ended" nothing_runs
}

# In a subshell: every step is tried, and what is not there needs no ending. The end is looked at by others.
end_everything() (
  set +e
  trap - ERR
  # First of all: the address is with another machine before anything that it points to ends here.
  if holds_vip; then systemctl disable -q --now keepalived 2>/dev/null; fi
  if has_ingress; then systemctl disable -q --now kube-ha-ingress 2>/dev/null; fi
  if [[ -e $ROOT/etc/systemd/system/kube-ha-approver.service ]]; then
    systemctl disable -q --now kube-ha-approver 2>/dev/null
  fi
  if [[ -e $ROOT/etc/systemd/system/kube-ha-spot-notice.service ]]; then
    systemctl disable -q --now kube-ha-spot-notice 2>/dev/null
  fi
  if [[ -e $ROOT/etc/systemd/system/kube-ha-resume.service ]]; then
    systemctl disable -q --now kube-ha-resume 2>/dev/null
  fi
  # It lets in machines of a cluster that this one is none of any more.
  if has_firewall; then open_machine; fi
  if lone_proxy; then systemctl disable -q --now haproxy 2>/dev/null; fi
  for unit in kubelet kube-ha-{addons,backup,etcd-guard,metrics}.timer etcd haproxy; do
    if [[ $unit == *etcd* || $unit == kube-ha-backup.timer ]] || in_kubernetes; then
      systemctl disable -q --now "$unit" 2>/dev/null
    fi
  done
  if in_kubernetes; then
    end_containers
    unplug
  fi
  true
)

# Containers outlive both kubelet and containerd. By their cgroups (of pods, and of node.sh's proof) they are found
# without either.
end_containers() {
  local pids end=$((SECONDS + 20))
  while ((SECONDS < end)); do
    # Where the kernel is shared with other machines, 0 stands for their processes.
    mapfile \
      -t pids < <(find "$ROOT/sys/fs/cgroup" \( -path '*kubepods*' -o -path '*k8s.io*' \) -name cgroup.procs \
        -exec cat {} + 2>/dev/null | grep -vx '[01]' | sort -u)
    if ((${#pids[@]} == 0)); then break; fi
    kill -KILL "${pids[@]}" 2>/dev/null
    sleep 0.3
  done
  systemctl disable -q --now containerd 2>/dev/null
  pkill -9 -f '^/usr/local/bin/containerd-shim-runc-v2' 2>/dev/null
}

# What they leave in the kernel: mounts, networks, rules; and the addresses that pods had, which a node that comes back
# would never use again.
unplug() {
  local netns link table tool
  awk -v root="$ROOT" 'index($2, root "/var/lib/kubelet/") == 1 || index($2, root "/run/containerd/") == 1 ||
    index($2, root "/run/netns/cni-") == 1 {print $2}' /proc/self/mounts |
    sort -r | xargs -r -n 1 umount -l 2>/dev/null
  for netns in "$ROOT"/run/netns/cni-*; do
    if [[ -e $netns ]]; then ip netns delete "${netns##*/}" 2>/dev/null; fi
  done
  for link in cni0 flannel.1 cilium_vxlan cilium_host vxlan.calico; do ip link delete "$link" 2>/dev/null; done
  for table in "ip kube-proxy" "ip6 kube-proxy" "ip flannel-ipv4" "ip6 flannel-ipv6" "ip calico" \
    "ip6 calico" "arp calico-arp"; do
    # shellcheck disable=SC2086 # family and name are two words
    nft delete table $table 2>/dev/null
  done
  # kube-proxy, flannel and Calico in iptables mode, and Cilium's own rules.
  for tool in iptables ip6tables; do
    # By no `grep -q`: it ends with the first match, and what still writes to it has then failed.
    if [[ $($tool-save 2>/dev/null) =~ $RULES ]]; then
      $tool-save | grep -vE "$RULES" | $tool-restore
    fi
  done
  # All configs, a user's network's too: with one of before a node that comes back would be Ready without its network.
  rm -rf "$ROOT/run/cni" "$ROOT/run/flannel" "$ROOT/var/lib/cni" "$ROOT"/etc/cni/net.d/*
  unplug_bpf
  unplug_calico
}

# Cilium's interfaces of pods, and programs at interfaces of the machine. Those that are pinned (tcx, control groups)
# end with their file.
unplug_bpf() {
  local link way
  if [[ ! -d $ROOT/run/cilium && ! -d $ROOT/sys/fs/bpf/cilium ]]; then return 0; fi
  for link in $(ip -o link show 2>/dev/null | awk -F '[ :@]+' '{print $2}'); do
    if [[ $link == lxc* ]]; then ip link delete "$link" 2>/dev/null; fi
    for way in ingress egress; do
      if [[ $(tc filter show dev "$link" "$way" 2>/dev/null) == *" cil_"* ]]; then
        tc qdisc delete dev "$link" clsact 2>/dev/null
      fi
    done
  done
  rm -rf "$ROOT/sys/fs/bpf/cilium" "$ROOT/sys/fs/bpf/tc"
  umount -l "$ROOT/run/cilium/cgroupv2" 2>/dev/null
  rm -rf "$ROOT/run/cilium"
}

# Calico's interfaces of pods, and routes to blocks of other nodes. Those by BIRD are its own where its folder is: it
# has port 179 for itself. Sets of addresses of rules in iptables mode stay until a boot: without rules they do nothing.
unplug_calico() {
  local link
  if [[ ! -d $ROOT/var/lib/calico ]]; then return 0; fi
  for link in $(ip -o link show 2>/dev/null | awk -F '[ :@]+' '{print $2}'); do
    if [[ $link == cali* ]]; then ip link delete "$link" 2>/dev/null; fi
  done
  ip route flush proto 80 2>/dev/null
  ip route flush proto bird 2>/dev/null
  rm -rf "$ROOT"/var/lib/calico "$ROOT"/run/calico "$ROOT"/var/log/calico
}

# After keepalived has ended: it would begin again with what is here.
forget_vip() {
  if holds_vip; then
    rm -rf "$ROOT/etc/keepalived/keepalived.conf" "$ROOT/etc/systemd/system/keepalived.service.d/kube-ha.conf" \
      "$STATE/keepalived.service.sum"
  fi
}

forget_ingress() {
  rm -rf "$ROOT"/etc/haproxy/ingress.cfg "$ROOT"/etc/systemd/system/kube-ha-ingress.service \
    "$ROOT"/etc/kube-ha/ingress "$STATE/kube-ha-ingress.service.sum"
}

# Stopping the unit does it; a table without it is what a run has left that was cut off.
open_machine() {
  systemctl disable -q --now kube-ha-firewall 2>/dev/null || true # what counts is the table
  nft delete table inet kube-ha-firewall 2>/dev/null || true      # it is gone
  nft delete table inet kube-ha-firewall-trial 2>/dev/null || true
}
forget_firewall() {
  rm -f "$ROOT"/etc/kube-ha/firewall.{rules,rules.new,nft} "$STATE/kube-ha-firewall.service.sum" \
    "$ROOT/etc/systemd/system/kube-ha-firewall.service"
}

# nothing_runs: nothing of kube-ha runs or listens; what does is told.
nothing_runs() {
  local names=etcd ports=$ETCD_PORTS port found
  if in_kubernetes; then
    # as the kernel cuts them
    names+='|kubelet|haproxy|containerd|containerd-shim'
    names+='|kube-apiserver|kube-controller|kube-scheduler|kube-proxy|flanneld'
    names+='|cilium-agent|cilium-operator|calico-node|calico-typha'
    ports+=" $KUBERNETES_PORTS"
  fi
  if lone_proxy; then
    names+='|haproxy'
    ports+=" $PROXY_PORT"
  fi
  if holds_vip; then names+='|keepalived'; fi
  found=$(pgrep -lx "$names" || true) # none is what is hoped for
  found+=$(nft list table inet kube-ha-firewall 2>/dev/null || true)
  for port in $ports; do found+=$(ss -Hltnp "sport = :$port"); done
  [[ -z $found ]] || {
    printf '%s\n' "$found"
    return 1
  }
}

# Nothing on this machine can act as the node any more, and nothing is taken for done: kubeconfigs, the kubelet's
# certificate, static pods, marks.
forget_identity() {
  local path
  for path in "$ROOT"/etc/kubernetes/*.conf "$ROOT"/etc/kubernetes/{manifests,tmp}/* \
    "$ROOT"/var/lib/kubelet/pki/kubelet-{client,server}* "$STATE"/*.sum "$STATE/static-pods.sums" \
    "$HOME_DIR"/aside{,.removed} "$ROOT"/etc/systemd/system/{,multi-user.target.wants/}kube-ha-put-back.service; do
    if [[ -e $path || -L $path ]]; then
      rm -rf "$path"
      changes=$((changes + 1))
    fi
  done
}

# The machine is clean, but for its owner's mark and these scripts. Cut off, the next run continues.
wipe() {
  local left folders=("$HOME_DIR")
  if in_kubernetes && [[ -d $ROOT/var/lib/kubelet ]]; then folders+=("$ROOT/var/lib/kubelet"); fi
  stand_down
  remove_files
  left=$(find "${folders[@]}" -mindepth 1 ! -path "$STATE" ! -path "$STATE/owner" | head -3)
  [[ -z $left ]] ||
    die "could not be cleaned; left: $(xargs <<<"$left")" \
      "see what holds them (mount, fuser), or reboot the machine; then run pulumi up again"
}
remove_files() (
  set +e
  trap - ERR
  if in_kubernetes; then
    rm -rf "$ROOT"/etc/containerd "$ROOT"/etc/haproxy/haproxy.cfg "$ROOT"/opt/cni/bin \
      "$ROOT"/var/log/{kubernetes,pods,containers} "$ROOT/var/lib/kube-ha-addons" \
      "$ROOT"/etc/systemd/system/{kubelet,containerd}.service{,.d} "$ROOT"/usr/local/sbin/runc \
      "$ROOT"/usr/local/bin/{kubelet,kubeadm,kubectl,containerd,containerd-shim-runc-v2,containerd-stress,ctr}
    # the folders themselves may be mount points
    find "$ROOT/var/lib/kubelet" "$ROOT/var/lib/containerd" -mindepth 1 -delete 2>/dev/null
  fi
  if lone_proxy; then rm -f "$ROOT/etc/haproxy/haproxy.cfg"; fi
  forget_vip
  forget_ingress
  forget_firewall
  rm -rf "$ROOT"/etc/{kubernetes,kube-ha} \
    "$ROOT"/etc/systemd/system/{etcd,kube-ha-{addons,backup,etcd-guard,metrics,resume,approver,spot-notice}}.service \
    "$ROOT"/etc/systemd/system/kube-ha-{addons,backup,etcd-guard,metrics}.timer "$ROOT"/etc/sysctl.d/90-kube-ha.conf \
    "$ROOT"/etc/modules-load.d/kube-ha.conf "$ROOT"/usr/local/bin/{etcd,etcdctl,etcdutl}
  if [[ -f $STATE/etcd.account ]]; then userdel etcd; fi
  # last of all: by what is in it a run that was cut off continues
  find "$HOME_DIR" -mindepth 1 ! -path "$STATE" ! -path "$STATE/owner" -delete 2>/dev/null
  systemctl daemon-reload
  true
)
