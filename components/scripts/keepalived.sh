# shellcheck shell=bash disable=SC2034 # the paths are theirs to use
# What phases vip and vip-peers share: keepalived's files, and whether it takes one. Only definitions; they source it.
SECRET=/etc/kube-ha/vrrp.conf
KEEPALIVED=$ROOT/etc/keepalived/keepalived.conf
DROPIN=$ROOT/etc/systemd/system/keepalived.service.d/kube-ha.conf

validated() { # validated FILE: keepalived itself takes it for right; a running one would end over an error
  local answer
  answer=$(keepalived -t -f "$1" 2>&1) ||
    die "keepalived refuses its new configuration, the running one stays: $(tail -n 3 <<<"$answer")" \
      "report this configuration: $1"
}
