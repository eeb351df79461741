# shellcheck shell=bash
# What phases firewall-open and firewall share: the rules of this machine, and whether the kernel has them. Only
# definitions; they source it.
# Files: KEPT, which the unit loads at each boot; in $STATE firewall.loaded, the sum of what nft lists of it.
KEPT=$ROOT/etc/kube-ha/firewall.nft
UNIT=kube-ha-firewall.service
UNIT_FILE=$ROOT/etc/systemd/system/$UNIT
TABLE="inet kube-ha"

# shellcheck disable=SC2086 # family and name are two words
listed() { nft -s list table $TABLE 2>/dev/null; }
is_loaded() { listed >/dev/null; }
# is_as FILE: the kernel has what was loaded of a file with that very text, and nobody has changed it there.
is_as() {
  local now
  now=$(listed | sha256sum) || return 1
  cmp -s "$1" "$KEPT" && [[ -f $STATE/firewall.loaded && $(<"$STATE/firewall.loaded") == "$now" ]]
}

checked() { # checked FILE: nft takes it
  local answer
  answer=$(nft -c -f "$1" 2>&1) ||
    die "nft refuses the new rules, the loaded ones stay: $(tail -n 3 <<<"$answer")" "report these rules: $1"
}

# keep FILE: it is loaded now and at each boot. One transaction: no packet meets half of it.
keep() {
  # Whatever somebody changed in the kernel alone is of another sum, and would count as settled.
  if ! is_as "$1"; then rm -f "$STATE/$UNIT.sum"; fi
  put 644 "$KEPT" <"$1"
  settle reload "$UNIT" "$KEPT" "$UNIT_FILE"
  put 600 "$STATE/firewall.loaded" < <(listed | sha256sum)
}
