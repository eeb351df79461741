# shellcheck shell=bash
# What comes to this machine is filtered where the config says so: by one table of nftables, beside those of others, and
# by a unit that loads it at each boot. What is forwarded, pods' packets among it, is none of its business. Only
# definitions; node.sh and probe.sh source it. Needs wipe.sh to take it away.
# Variables: FIREWALL (rules of nftables, one a line; unset: nothing is filtered)
FILTER=kube-ha-firewall # the unit, and the table of family inet
FILTER_RULES=$ROOT/etc/kube-ha/firewall.rules
FILTER_TABLE=$ROOT/etc/kube-ha/firewall.nft
FILTER_UNIT=$ROOT/etc/systemd/system/$FILTER.service
HEARD_S=15
KNOWN_S=5

# filter_table RULES VERDICT: the table as a file for nft, which replaces it in one transaction; VERDICT: over the rest.
# Packets of Services that kube-proxy has turned to a pod in the network of this machine count as those to other pods.
filter_table() {
  printf '%s\n' "table inet $FILTER" "delete table inet $FILTER" "table inet $FILTER {
  chain lets-in {
    include \"$1\"
  }
  chain input {
    type filter hook input priority filter; policy accept;
    iifname \"lo\" accept
    ct state established,related accept
    ct status dnat accept
    meta l4proto { icmp, ipv6-icmp } accept
    udp sport 67 udp dport 68 accept
    ip6 saddr fe80::/10 udp dport 546 accept
    jump lets-in
    counter $2
  }
}"
}

# Before networks are up, so that nothing is open for a moment; after the system's own rules, which begin by deleting
# all there are, and again whenever those are loaded.
filter_unit() {
  printf '%s\n' "# kube-ha: stopping it opens the machine
[Unit]
Description=What this machine of kube-ha lets in
DefaultDependencies=no
Wants=network-pre.target
Before=network-pre.target
After=local-fs.target nftables.service
PartOf=nftables.service
ReloadPropagatedFrom=nftables.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/sbin/nft -f $FILTER_TABLE
ExecReload=/usr/sbin/nft -f $FILTER_TABLE
ExecStop=/usr/sbin/nft delete table inet $FILTER

[Install]
WantedBy=sysinit.target"
}

set_up_firewall() {
  local new=$FILTER_RULES.new answer
  if [[ -z ${FIREWALL:-} ]]; then
    without_firewall
    return
  fi
  mkdir -p "${new%/*}"
  printf '%s\n' "$FIREWALL" >"$new"
  answer=$(filter_table "$new" drop | nft -c -f - 2>&1) ||
    die "nft refuses the new rules, the loaded ones stay: $(tail -n 3 <<<"$answer")" "report these rules: $new"
  if ! cmp -s "$new" "$FILTER_RULES" || [[ $(filter_state) != kept ]]; then
    lets_this_in "$new"
    know_connections "$new"
    rm -f "$STATE/$FILTER.service.sum" # whatever was changed in the kernel alone
  fi
  put 644 "$FILTER_RULES" <"$new"
  rm -f "$new"
  filter_table "$FILTER_RULES" drop | put 644 "$FILTER_TABLE"
  filter_unit | put 644 "$FILTER_UNIT"
  settle reload kube-ha-firewall.service "$FILTER_RULES" "$FILTER_TABLE" "$FILTER_UNIT"
}

# Whether the kernel has the table of the file: kept, changed or missing. The file is loaded into a network of its own,
# in which nothing else is, so both are as this nft writes them.
filter_state() {
  local is wanted
  is=$(nft -s list table inet "$FILTER" 2>/dev/null) || true
  wanted=$(unshare -n sh -c "nft -f '$FILTER_TABLE' && nft -s list table inet $FILTER" 2>/dev/null) || true
  if [[ -z $is ]]; then
    echo missing
  elif [[ $is == "$wanted" ]]; then
    echo kept
  else
    echo changed
  fi
}

# Would the rules let in whoever asks for them? Packets of the very connection by which this was asked for are judged as
# those of a new one, and counted: a table of its own does it, which drops nothing. So who would be locked out is told,
# and nothing has changed yet.
lets_this_in() { # lets_this_in RULES
  local own other family=ip end=$((SECONDS + HEARD_S)) came refused=0
  if [[ -z ${SESSION:-} ]]; then return; fi # asked for on the machine itself: nobody comes
  read -r own other < <(ss -Htnp state established |
    awk -v pid="pid=$SESSION," 'index($0, pid) {print $3, $4; exit}') ||
    die "the SSH connection by which this was asked for is not found, so the rules cannot be tried" "ss -tnp on $NODE"
  own=${own##*:} other=${other/::ffff:/}
  local address=${other%:*}
  address=${address#[} address=${address%]}
  if [[ $address == *:* ]]; then family=ip6; fi
  printf '%s\n' "table inet $FILTER-trial" "delete table inet $FILTER-trial" "table inet $FILTER-trial {
  counter came { }
  counter refused { }
  chain lets-in {
    include \"$1\"
  }
  chain judged {
    counter name came
    jump lets-in
    counter name refused
  }
  chain input {
    type filter hook input priority filter; policy accept;
    $family saddr ${address%\%*} tcp sport ${other##*:} tcp dport $own goto judged
  }
}" | nft -f -
  came=$(tried came)
  while ((came == 0 && SECONDS < end)); do
    log "would packets from $address still be let in?" # a line that the other end has to acknowledge
    sleep 0.3
    came=$(tried came)
  done
  refused=$(tried refused)
  nft delete table inet "$FILTER-trial"
  ((came > 0)) || die "no packet from $address came in $HEARD_S s, so the rules cannot be tried"
  ((refused == 0)) ||
    die "the firewall would keep out $address, by which this update reaches port $own here; nothing was changed" \
      "let that address in (machines.firewall.sshFrom; another port: machines.firewall.more), then run pulumi up again"
}
tried() { nft list counter inet "$FILTER-trial" "$1" | awk '$1 == "packets" {print $2}'; }

# Where nothing was filtered yet, the kernel may follow no connection. It has to know those that there are before the
# first packet is dropped, or the next one of a stream that only comes in would be.
know_connections() { # know_connections RULES
  if nft list table inet "$FILTER" >/dev/null 2>&1; then return; fi
  filter_table "$1" accept | nft -f -
  sleep "$KNOWN_S"
}

without_firewall() {
  if ! has_firewall; then return; fi
  open_machine
  forget_firewall # its unit last: by it a run that was cut off continues
  systemctl daemon-reload
  changes=$((changes + 1))
  log "the firewall is gone: nothing that comes to this machine is filtered any more"
}
