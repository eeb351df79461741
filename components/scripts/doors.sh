# shellcheck shell=bash
# How a machine stops being one of those at which clients outside arrive: what node.sh and vip-away.sh share. Only
# definitions; they source it. Needs wipe.sh.

# The config wants no virtual IP of kube-ha here; making one is phase vip's.
without_vip() {
  if ! holds_vip; then return; fi
  systemctl disable -q --now keepalived
  rm -f "$ROOT/etc/kube-ha/vrrp.conf"
  forget_keys "$ROOT/etc/kube-ha/vrrp.conf"
  forget_vip # by its files a run that was cut off continues
  systemctl daemon-reload
  changes=$((changes + 1))
  log "keepalived stopped: this machine holds no virtual IP any more"
}

without_ingress() {
  if ! has_ingress; then return; fi
  systemctl disable -q --now kube-ha-ingress
  rm -rf "$ROOT/etc/kube-ha/ingress"
  forget_keys "$ROOT/etc/kube-ha/ingress/"
  forget_ingress # its unit last, as above
  systemctl daemon-reload
  changes=$((changes + 1))
  log "the ingress tier stopped here"
}

is_load_balancer() { [[ ${ROLES:-} == loadbalancer ]]; }
# Whether the virtual IP may come here: what phase vip has made, and nobody has switched off.
stands_by() { holds_vip && systemctl is-enabled -q keepalived; }
# Before packages change: the address goes to another machine while HAProxy here still answers who comes by it.
hand_over_vip() {
  if ! systemctl is-active -q keepalived; then return; fi
  log "the virtual IP goes to another machine, if it is here"
  systemctl stop keepalived
  sleep 2
}
# It asks the cluster first, and a start that is refused is tried again by systemd.
stand_by_again() {
  if stands_by && ! systemctl is-active -q keepalived; then systemctl start --no-block keepalived; fi
}
