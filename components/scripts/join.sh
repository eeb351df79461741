# shellcheck shell=bash
# Makes this machine a node of the cluster, once. Its stdin is secret (a bootstrap token that lives two hours); what may change later is node.sh's.
# Values: KUBEADM_CONFIG (JoinConfiguration, discovery by file), DISCOVERY (kubeconfig with the token). Owns: /etc/kubernetes/kubelet.conf.
main() {
  local applied
  own
  applied=$(<"$STATE/applied")
  begin "$applied"
  if [[ ! -f /etc/kubernetes/kubelet.conf ]]; then
    put 600 /etc/kube-ha/join.yaml <<<"$KUBEADM_CONFIG"
    put 600 /etc/kubernetes/discovery.conf <<<"$DISCOVERY"
    # What a run that died may have left; the kubelet has no identity yet, so nothing is lost.
    systemctl stop kubelet
    rm -f /etc/kubernetes/bootstrap-kubelet.conf /etc/kubernetes/pki/ca.crt /var/lib/kubelet/pki/kubelet-client-current.pem
    timeout 300 kubeadm join --config /etc/kube-ha/join.yaml >"$STATE/kubeadm.log" 2>&1 || {
      rm -f /etc/kubernetes/discovery.conf
      die "kubeadm join: $(grep -v '^\[' "$STATE/kubeadm.log" | tail -n 8)" "see $STATE/kubeadm.log and journalctl -u kubelet on $NODE, then run pulumi up again"
    }
    changes=$((changes + 1))
  fi
  rm -f /etc/kubernetes/discovery.conf /etc/kubernetes/bootstrap-kubelet.conf # both hold the token
  announce "$applied"
  finish
}
