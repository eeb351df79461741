# shellcheck shell=bash
# Makes a bootstrap token valid for some hours, the only one of kube-ha, and what it needs to be usable (RBAC). Its
# stdin is secret.
# Variables: KUBEADM_CONFIG (InitConfiguration with the token, ClusterConfiguration), JOINING (names of those that are
#   to join, as in WANTED of nodes.sh; may be empty), TOKEN_S (how long the token lives). Runs on a master, only when
#   nodes are to join.
# shellcheck source=tokens.sh disable=SC2154 # here: the folder of run.sh
source "$here/tokens.sh"
# shellcheck source=cluster-reader.sh
source "$here/cluster-reader.sh"
# shellcheck source=node-record.sh
source "$here/node-record.sh"

# Whom approve.sh lets in by this token. kubeadm would have every name approved, that of a master too, for whoever has
# any token.
tell_joining() { # tell_joining ID
  local names
  names=$(expand "$JOINING" | paste -sd' ') || return 1
  # By a file: they may be longer than an argument.
  jq -n --arg token "$1" --rawfile names <(printf '%s' "$names") --arg until "$(($(date +%s) + TOKEN_S))" \
    '{apiVersion: "v1", kind: "ConfigMap", metadata: {name: "kube-ha-joining", namespace: "kube-system"}, data: {
      token: $token, names: $names, until: $until}}' |
    kubectl_admin apply --server-side --force-conflicts --field-manager kube-ha -f - >/dev/null
}
approve_nobody() { kubectl_admin delete --ignore-not-found -- clusterrolebinding kubeadm:node-autoapprove-bootstrap; }

main() {
  local id
  own
  if [[ -n $JOINING ]]; then ask_for "$JOINING"; fi # before they can: whoever takes this back has to know of them
  id=$(sed -n 's/^- token: "\{0,1\}\([a-z0-9]\{6\}\)\..*/\1/p' <<<"$KUBEADM_CONFIG")
  wait_for 60 "names that join told to the cluster" tell_joining "$id"
  put 600 /etc/kube-ha/mint.yaml <<<"$KUBEADM_CONFIG"
  kubeadm init phase bootstrap-token --config /etc/kube-ha/mint.yaml --kubeconfig /etc/kubernetes/admin.conf \
    --skip-token-print >"$STATE/kubeadm.log" 2>&1 || {
    rm -f /etc/kube-ha/mint.yaml
    die "bootstrap token: $(grep -v '^\[' "$STATE/kubeadm.log" | tail -n 3)"
  }
  rm -f /etc/kube-ha/mint.yaml
  wait_for 60 \
    "end of kubeadm's approval of every name (kubectl get clusterrolebinding kubeadm:node-autoapprove-bootstrap)" \
    approve_nobody
  # Of an update that was interrupted: whoever joins by it now starts again with this one.
  wait_for 60 "older bootstrap tokens of kube-ha gone" end_tokens "$id"
  finish
}
