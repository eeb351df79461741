# shellcheck shell=bash
# Makes this machine one of those that can hold the virtual IP: keepalived beside HAProxy, which listens at that address already. The address
# moves to a machine only where its HAProxy answers; a change of the others' list moves nothing.
# Values: ADDRESS, VIP (address:port), INTERFACE, KEEPALIVED_CONF, KEEPALIVED_DROPIN.
# Owns: keepalived.service and its drop-in, /etc/keepalived/keepalived.conf, /etc/kube-ha/vip-check. The password comes with the keys of the master.
SECRET=/etc/kube-ha/vrrp.conf
KEEPALIVED=$ROOT/etc/keepalived/keepalived.conf
DROPIN=$ROOT/etc/systemd/system/keepalived.service.d/kube-ha.conf
CHECK=/etc/kube-ha/vip-check
# shellcheck source=vip-check.sh disable=SC2154 # here: the folder of run.sh
source "$here/vip-check.sh"

# All that is wrong at once, before anything is written.
refuse_wrong_machine() {
  local found problems=()
  found=$(ip -o -4 addr show | awk -v address="$ADDRESS/" 'index($4, address) == 1 {print $2}' | xargs)
  [[ " $found " == *" $INTERFACE "* ]] || problems+=("address $ADDRESS is on interface ${found:-none}, not on $INTERFACE (frontDoors.vip.interface)")
  if [[ -s $KEEPALIVED ]] && ! grep -q '^# kube-ha' "$KEEPALIVED"; then problems+=("keepalived serves something of somebody else here ($KEEPALIVED)"); fi
  [[ -s $SECRET ]] || problems+=("$SECRET, the password of VRRP, is missing")
  ((${#problems[@]} == 0)) || die "cannot hold the virtual IP ${VIP%:*}: $(
    IFS=';'
    printf '%s' "${problems[*]}"
  )" "correct the config or the machine, then run pulumi up again; nothing was changed"
}

# Where another machine answers for it already, two would have it: one of somebody else, or of another cluster.
refuse_taken() {
  local answer
  if [[ -f $STATE/keepalived.service.sum ]] || mine; then return; fi
  if answer=$(curl -s --max-time 3 --noproxy '*' --cacert "$MEMBER_CA" "https://$VIP/version" -o /dev/null -w '%{http_code}' 2>&1); then return; fi # ours: by the cluster's own CA
  if command -v ping >/dev/null && ping -c 1 -W 1 "${VIP%:*}" >/dev/null 2>&1; then
    die "${VIP%:*} answers already, and not as this cluster ($answer)" "choose a free address for frontDoors.vip, or take it from the machine that has it"
  fi
}
mine() { [[ $(ip -o -4 addr show) == *" ${VIP%:*}/"* ]]; }
listens() { [[ -n $(ss -Hltn "src $VIP") ]]; }

validated() { # validated FILE: keepalived itself takes it for right; a running one would end over an error
  local answer
  answer=$(keepalived -t -f "$1" 2>&1) || die "keepalived refuses its new configuration, the running one stays: $(tail -n 3 <<<"$answer")" "report this configuration: $1"
}

main() {
  local new=${KEEPALIVED%/*}/.kube-ha.conf.new
  own
  refuse_wrong_machine
  wait_for 30 "HAProxy listening at $VIP" listens
  refuse_taken
  mkdir -p "${KEEPALIVED%/*}"
  put 755 "$CHECK" <"$here/vip-check.sh"
  printf '%s\n' "$KEEPALIVED_CONF" >"$new"
  validated "$new"
  put 644 "$DROPIN" <<<"$KEEPALIVED_DROPIN"
  put 644 "$KEEPALIVED" <"$new"
  rm -f "$new"
  systemctl unmask -q keepalived
  settle reload keepalived.service "$KEEPALIVED" "$DROPIN" "$SECRET"
  finish
}
