# shellcheck shell=bash
# Makes the files of this node's PKI hold what the stack holds. The one phase whose values are keys: its stdin is secret.
# Values: PKI_COUNT, then PKI_MODE_<n>, PKI_PATH_<n>, PKI_TEXT_<n> for n from 1.
main() {
  local n mode path text
  own
  for ((n = 1; n <= PKI_COUNT; n++)); do
    mode=PKI_MODE_$n path=PKI_PATH_$n text=PKI_TEXT_$n
    install -d -m 755 "$(dirname "${!path}")"
    put "${!mode}" "${!path}" <<<"${!text}"
  done
  finish
}
