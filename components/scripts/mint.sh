# shellcheck shell=bash
# Makes a bootstrap token valid for two hours, and what it needs to be usable (cluster-info, RBAC). Its stdin is secret.
# Values: KUBEADM_CONFIG (InitConfiguration with the token, ClusterConfiguration). Runs on a master, only when nodes are to join.
main() {
  own
  put 600 /etc/kube-ha/mint.yaml <<<"$KUBEADM_CONFIG"
  kubeadm init phase bootstrap-token --config /etc/kube-ha/mint.yaml --kubeconfig /etc/kubernetes/admin.conf --skip-token-print >"$STATE/kubeadm.log" 2>&1 || {
    rm -f /etc/kube-ha/mint.yaml
    die "bootstrap token: $(grep -v '^\[' "$STATE/kubeadm.log" | tail -n 3)"
  }
  rm -f /etc/kube-ha/mint.yaml
  finish
}
