# shellcheck shell=bash
# On a master that holds the virtual IP, or runs as standby for it, while load balancers are to do so: they hear it from
# here on, and so one of them takes the address within a second of the master's last word (phase vip-away). On any other
# master: nothing.
# Variables: PEERS (addresses of the load balancers).
# shellcheck source=keepalived.sh disable=SC2154 # here: the folder of run.sh
source "$here/keepalived.sh"

main() {
  local peer new=${KEEPALIVED%/*}/.kube-ha.conf.new
  own
  if ! systemctl is-active -q keepalived || ! grep -qs '^# kube-ha' "$KEEPALIVED"; then
    finish
    return
  fi
  cp "$KEEPALIVED" "$new"
  for peer in $PEERS; do
    if ! grep -qxE " *${peer//./\\.}" "$new"; then sed -i "/^ *unicast_peer {/a\\    $peer" "$new"; fi
  done
  validated "$new"
  put 644 "$KEEPALIVED" <"$new"
  rm -f "$new"
  settle reload keepalived.service "$KEEPALIVED" "$DROPIN" "$SECRET"
  finish
}
