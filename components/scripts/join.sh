# shellcheck shell=bash
# Makes this machine a node of the cluster, once. Its stdin is secret (a bootstrap token that lives some hours); what
# may change later is node.sh's.
# Variables: KUBEADM_CONFIG (JoinConfiguration, discovery by file), DISCOVERY (kubeconfig with the token). Owns:
#   /etc/kubernetes/kubelet.conf.
# shellcheck source=kubelet.sh disable=SC2154 # here: the folder of run.sh
source "$here/kubelet.sh"
join_cluster() {
  local end=$((SECONDS + 120))
  put 600 "$ROOT/etc/kube-ha/join.yaml" <<<"$KUBEADM_CONFIG"
  put 600 "$ROOT/etc/kubernetes/discovery.conf" <<<"$DISCOVERY"
  while true; do
    clear_away
    if timeout 300 kubeadm join --config "$ROOT/etc/kube-ha/join.yaml" >"$STATE/kubeadm.log" 2>&1; then break; fi
    # A machine that died while it joined, or came back as a new one: the cluster takes it for alive for another 50 s.
    if ! grep -q 'status "Ready" already exists' "$STATE/kubeadm.log" || ((SECONDS >= end)); then
      rm -f "$ROOT/etc/kubernetes/discovery.conf"
      die "kubeadm join: $(grep -v '^\[' "$STATE/kubeadm.log" | tail -n 8)" \
        "see $STATE/kubeadm.log and journalctl -u kubelet on $NODE, and on a master journalctl -u kube-ha-approver," \
        "which lets it in; then run pulumi up again"
    fi
    sleep 5
  done
  changes=$((changes + 1))
  kubelet_started
}

# What a run that died may have left, or a life before; the kubelet has no identity that counts, so nothing is lost.
clear_away() {
  systemctl stop kubelet
  rm -f "$ROOT"/etc/kubernetes/{bootstrap-kubelet.conf,kubelet.conf,pki/ca.crt} \
    "$ROOT"/var/lib/kubelet/pki/kubelet-{client,server}*
}

# A certificate that ran out while the machine was unavailable, say.
identity_refused() {
  local answer
  # an API that is unavailable says nothing
  answer=$(curl -s --max-time 10 --noproxy '*' --cacert "$CLUSTER_CA" --cert "$IDENTITY" -o /dev/null \
    -w '%{http_code}' "https://127.0.0.1:3446/api/v1/nodes/$NODE" || true)
  [[ $answer == 401 ]]
}

main() {
  local applied
  own
  applied=$(<"$STATE/applied")
  begin "$applied"
  if ! joined || identity_refused; then join_cluster; else settle_kubelet; fi
  rm -f "$ROOT"/etc/kubernetes/{discovery.conf,bootstrap-kubelet.conf} # both hold the token
  announce "$applied"
  finish
}
