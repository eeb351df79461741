# shellcheck shell=bash
# Makes the files of this node's PKI hold what the stack holds. The one phase whose values are keys: its stdin is secret.
# Leaves the sums of what it wrote in $STATE/pki.sums, by which probe.sh tells what was changed since, without a look at any content.
# Values: OS_PACKAGES (of a load balancer: the node phase may reboot it for a new word; may be unset), PKI_COUNT, then PKI_MODE_<n> (644 where it is not said), PKI_PATH_<n>, PKI_TEXT_<n> for n from 1.
main() {
  local n mode path text paths=()
  # The next load balancer is not touched before this one is back.
  if [[ -n ${OS_PACKAGES:-} ]]; then await_resumed; fi
  own
  for ((n = 1; n <= PKI_COUNT; n++)); do
    mode=PKI_MODE_$n path=PKI_PATH_$n text=PKI_TEXT_$n
    install -d -m 755 "$(dirname "${!path}")"
    put "${!mode:-644}" "${!path}" <<<"${!text}"
    paths+=("${!path}")
  done
  record_sums "${paths[@]}"
  finish
}

# A node has several sets of keys, each written by a run of its own: the sums of the others stay.
record_sums() {
  local sums mark=$STATE/pki.sums
  sums=$(sha256sum -- "$@")
  if [[ -f $mark ]]; then sums+=$'\n'$(awk 'NR == FNR {now[$2]; next} !($2 in now)' <(printf '%s\n' "$sums") "$mark"); fi
  sums=$(sort -k 2 <<<"${sums%$'\n'}")
  put 600 "$mark" <<<"$sums"
}
