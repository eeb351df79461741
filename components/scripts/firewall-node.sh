# shellcheck shell=bash
# What phase node has to do with firewalls: none of somebody else's beside one of kube-ha, and none of kube-ha that the
# config does not want. Only definitions; node.sh sources it. Needs wipe.sh.

# A packet has to pass all of them, and nobody opens the others for the cluster.
refuse_other_firewalls() {
  local other=""
  if systemctl is-active -q firewalld; then other=firewalld; fi
  if grep -qsi '^ENABLED=yes' "$ROOT/etc/ufw/ufw.conf"; then other=ufw; fi
  if [[ -n $other ]]; then
    die "$other filters on this machine, where machines.firewall is to" \
      "switch it off (systemctl disable --now $other), or take machines.firewall out of the config; nothing was changed"
  fi
}
without_firewall() {
  if [[ ! -e $ROOT$FIREWALL_UNIT_FILE ]]; then return; fi
  open_machine
  forget_firewall # its unit last: by it a run that was cut off continues
  systemctl daemon-reload
  changes=$((changes + 1))
  log "the firewall is gone: all ports of this machine are open"
}
