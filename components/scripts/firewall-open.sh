# shellcheck shell=bash
# Lets in what the new rules do beside what is let in now: machines that are about to join are known to this one before
# they dial it, and those that leave stay known. Nothing is closed here. A machine without a table is open as it is.
# Variables: FIREWALL_NFT (the new rules), GENERATION (a trigger).
# shellcheck source=firewall-rules.sh disable=SC2154 # here: the folder of run.sh
source "$here/firewall-rules.sh"

# widened NEW: the new rules, and before them the rules that are loaded, with their sets under names of their own.
widened() {
  awk '
    FNR == NR {
      if (/^  set /) { sub(/^  set /, "  set before-"); sets = sets $0 "\n" }
      if (/^    .* accept/ && is_rule) { gsub(/@/, "@before-"); rules = rules $0 "\n" }
      if (/^  chain /) is_rule = $2 == "lets-in"
      next
    }
    /^  chain lets-in/ { printf "%s%s\n%s", sets, $0, rules; next }
    { print }' "$KEPT" "$1"
}

main() {
  local new=${KEPT%/*}/.firewall.nft.asked both=${KEPT%/*}/.firewall.nft.both
  own
  mkdir -p "${KEPT%/*}"
  if ! is_loaded || [[ ! -f $KEPT ]]; then
    finish
    return
  fi
  printf '%s\n' "$FIREWALL_NFT" >"$new"
  if ! is_as "$new"; then
    widened "$new" >"$both"
    checked "$both"
    keep "$both"
  fi
  rm -f "$new" "$both"
  finish
}
