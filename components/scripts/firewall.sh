# shellcheck shell=bash
# Makes this machine let in what the rules say, and nothing else. The rules are tried before they are kept: packets of
# the very connection by which this was asked for have to come through them as a new one's would. If they do not, the
# rules of before are back at once; should this run be cut off meanwhile, a timer brings them back.
# Variables: FIREWALL_NFT (the rules), FIREWALL_UNIT (what loads them at boot), GENERATION (a trigger).
# Changes: the table inet kube-ha of nftables, kube-ha-firewall.service, /etc/kube-ha/firewall.nft.
# shellcheck source=firewall-rules.sh disable=SC2154 # here: the folder of run.sh
source "$here/firewall-rules.sh"
TRIED_S=60 # after which the timer opens what a run has left that was cut off
HEARD_S=15
KNOWN_S=5
BACK=kube-ha-firewall-back # the timer
BEFORE=$RUN/firewall.before

# The connection by which this was asked for, as this machine sees it: "address:port address:port", own end first.
connection() {
  ss -Htnp state established | awk -v pid="pid=$SESSION," 'index($0, pid) {print $3, $4; exit}'
}
# Bytes that the other end has acknowledged.
acknowledged() { # acknowledged OWN OTHER
  ss -Htin state established src "$1" dst "$2" | grep -o 'bytes_acked:[0-9]*' | cut -d: -f2
}

# tried NEW OWN OTHER: the rules, and in them packets of that connection, which are not taken for known ones.
tried() {
  local own=${2/::ffff:/} other=${3/::ffff:/} family=ip address
  address=${other%:*} address=${address#[} address=${address%]}
  if [[ $address == *:* ]]; then family=ip6; fi
  awk -v rule="    $family saddr $address tcp sport ${other##*:} tcp dport ${own##*:} goto tried" '
    /^  chain input/ { print "  chain tried {\n    jump lets-in\n    counter drop\n  }" }
    /^    ct state established/ { print rule }
    { print }' "$1"
}

# lets_this_in NEW: nothing where the run was asked for on the machine itself, by nobody whom it could keep out.
lets_this_in() {
  local own other before trial=${KEPT%/*}/.firewall.nft.tried
  if [[ -z ${SESSION:-} ]]; then return; fi
  read -r own other < <(connection) ||
    die "the SSH connection by which this was asked for is not found, so the rules cannot be tried" "ss -tnp on $NODE"
  tried "$1" "$own" "$other" >"$trial"
  checked "$trial"
  before=$(acknowledged "$own" "$other")
  bring_back_later
  nft -f "$trial"
  rm -f "$trial"
  log "the new rules are loaded; do packets from ${other%:*} still come through?" # this line has to be acknowledged
  if ! heard "$own" "$other" "$before"; then
    bring_back
    die "the new rules keep out ${other%:*}, by which this update reaches the machine: the old ones are back" \
      "let that address in (machines.firewall.sshFrom), then run pulumi up again"
  fi
}
heard() { # heard OWN OTHER BYTES
  local end=$((SECONDS + HEARD_S)) now
  while ((SECONDS < end)); do
    now=$(acknowledged "$1" "$2") || now=$3
    if ((now > $3)); then return 0; fi
    sleep 0.2
  done
  return 1
}

note_before() {
  if is_loaded && [[ -f $KEPT ]]; then
    cp "$KEPT" "$BEFORE"
  else
    printf 'table %s\ndelete table %s\n' "$TABLE" "$TABLE" >"$BEFORE"
  fi
}
bring_back_later() {
  end_timer
  # systemd may let a timer be a minute late where nobody says otherwise.
  systemd-run -q --collect --unit "$BACK" --on-active "$TRIED_S" --timer-property AccuracySec=1s \
    /usr/sbin/nft -f "$BEFORE" ||
    die "no timer that would bring the old rules back can be started" "see journalctl -b -u $BACK.timer on $NODE"
}
bring_back() {
  nft -f "$BEFORE"
  end_timer
}
end_timer() { systemctl stop "$BACK.timer" 2>/dev/null || true; } # one that is not there needs no end

# Where nothing was filtered yet, the kernel may follow no connection. It has to know those that there are before the
# first packet is dropped, or the next one of a stream that only comes in would be.
know_connections() {
  local known=${KEPT%/*}/.firewall.nft.known
  if is_loaded; then return; fi
  grep -v '^    counter drop$' "$1" >"$known"
  checked "$known"
  nft -f "$known"
  rm -f "$known"
  sleep "$KNOWN_S"
}

main() {
  local new=${KEPT%/*}/.firewall.nft.asked
  own
  mkdir -p "${KEPT%/*}"
  put 644 "$UNIT_FILE" <<<"$FIREWALL_UNIT"
  printf '%s\n' "$FIREWALL_NFT" >"$new"
  checked "$new"
  if ! is_as "$new"; then
    note_before
    know_connections "$new"
    lets_this_in "$new"
  fi
  keep "$new"
  end_timer
  rm -f "$new" "$BEFORE"
  finish
}
