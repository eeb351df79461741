# shellcheck shell=bash
# Makes the files of this node's PKI hold what the stack holds. The one phase whose values are keys: its stdin is
# secret. Leaves the sums of what it wrote in $STATE/pki.sums, by which probe.sh tells what was changed since, without a
# look at any content.
# Variables: OS_PACKAGES (of a load balancer: the node phase may reboot it for a new word; may be unset), PKI_COUNT,
#   then PKI_MODE_<n> (644 where it is not said), PKI_OWNER_<n> (etcd:etcd, or unset: root), PKI_PATH_<n>, PKI_TEXT_<n>
#   for n from 1.
# shellcheck source=etcd-client.sh disable=SC2154 # here: the folder of run.sh
source "$here/etcd-client.sh"

main() {
  local n mode owner path text paths=()
  # The next load balancer is not touched before this one is back.
  if [[ -n ${OS_PACKAGES:-} ]]; then await_resumed; fi
  own
  for ((n = 1; n <= PKI_COUNT; n++)); do
    mode=PKI_MODE_$n owner=PKI_OWNER_$n path=PKI_PATH_$n text=PKI_TEXT_$n
    install -d -m 755 "$(dirname "${!path}")"
    if [[ ${!owner:-} == etcd:etcd ]]; then etcd_account; fi
    put "${!mode:-644}" "${!path}" "${!owner:-}" <<<"${!text}"
    paths+=("${!path}")
  done
  record_sums "${paths[@]}"
  wake_api_server
  finish
}

# While leafs had run out it ended again and again, and a kubelet waits for up to five minutes before it starts such a
# one once more.
wake_api_server() {
  # shellcheck disable=SC2154 # counted by put
  if ((changes == 0)) || [[ ! -f $ROOT/etc/kubernetes/manifests/kube-apiserver.yaml ]] ||
    ! systemctl is-active -q kubelet; then
    return
  fi
  if curl -fsSk --max-time 5 --noproxy '*' -o /dev/null https://127.0.0.1:6443/readyz 2>/dev/null; then return; fi
  log "the API server does not serve: kubelet starts again with it"
  systemctl restart kubelet
}

# A node has several sets of keys, each written by a run of its own: the sums of the others stay.
record_sums() {
  local sums mark=$STATE/pki.sums
  sums=$(sha256sum -- "$@")
  if [[ -f $mark ]]; then
    sums+=$'\n'$(awk 'NR == FNR {now[$2]; next} !($2 in now)' <(printf '%s\n' "$sums") "$mark")
  fi
  sums=$(sort -k 2 <<<"${sums%$'\n'}")
  put 600 "$mark" <<<"$sums"
}
