# shellcheck shell=bash
# The kubeconfigs of a master: made by kubeadm, with the cluster's CAs in them, renewed with the stack's certificates.
# Part of phase master, which sets CONFIG, KUBECONFIGS and LOCAL_API.

# All clients on a node go by the node's HAProxy, so that they live on when the local apiserver is unavailable.
kubeconfigs() {
  local name path
  trust_ca # kubeadm refuses those that exist and do not trust the CA that signs
  for name in $KUBECONFIGS; do
    kubeadm init phase kubeconfig "$name" --config "$CONFIG" >"$STATE/kubeadm.log" 2>&1 ||
      die "kubeconfigs: $(tail -n 3 "$STATE/kubeadm.log")"
    path=$ROOT/etc/kubernetes/$name.conf
    if ! grep -qF "server: $LOCAL_API" "$path"; then
      kubectl --kubeconfig "$path" config set-cluster "$CLUSTER" --server "$LOCAL_API" >/dev/null
    fi
  done
  trust_ca
}
trust_ca() {
  local name paths=()
  for name in $KUBECONFIGS; do paths+=("$ROOT/etc/kubernetes/$name.conf"); done
  embed_ca /etc/kubernetes/pki/ca.crt "${paths[@]}"
}

# kubeadm keeps kubeconfigs that exist without a look at their dates: they are renewed when the stack renews its leafs.
renew_kubeconfigs() {
  local name
  unsettle certificates
  log "renewing the certificates in kubeconfigs"
  for name in admin controller-manager scheduler; do
    kubeadm certs renew "$name.conf" --config "$CONFIG" >"$STATE/kubeadm.log" 2>&1 ||
      die "$name.conf cannot be renewed: $(tail -n 3 "$STATE/kubeadm.log")"
  done
  trust_ca # kubeadm has put in the CA that signs, alone
  restart_controller controller-manager 10257
  restart_controller scheduler 10259
  changes=$((changes + 1))
}
restart_controller() { # restart_controller NAME PORT: it reads its kubeconfig at the start only
  put_aside "kube-$1"
  wait_for 90 "old kube-$1 stopped" nothing_on "$2"
  kubeadm init phase control-plane "$1" --config "$CONFIG" >"$STATE/kubeadm.log" 2>&1 ||
    die "kube-$1: $(tail -n 3 "$STATE/kubeadm.log")"
  nothing_aside
  wait_for 90 "kube-$1 answering" curl -fsSk --max-time 5 --noproxy '*' "https://127.0.0.1:$2/healthz"
}

kubeconfigs_missing() {
  local name
  for name in $KUBECONFIGS; do
    if [[ ! -f /etc/kubernetes/$name.conf ]]; then return 0; fi
  done
  return 1
}
