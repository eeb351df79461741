# shellcheck shell=bash
# Makes this machine one of those that can hold the virtual IP: keepalived beside HAProxy, which listens at that address
# already. The address moves to a machine only where its HAProxy answers; a change of the others' list moves nothing.
# Variables: ADDRESS, VIP (address:port), INTERFACE, KEEPALIVED_CONF, KEEPALIVED_DROPIN; of a load balancer
#   GENERATION_HERE (as the cluster lists it); RESTING (1: in maintenance, keepalived is off).
# Changes: keepalived.service and its drop-in, /etc/keepalived/keepalived.conf, /etc/kube-ha/vip-check. The password
#   comes with the keys of the machine.
CHECK=/etc/kube-ha/vip-check
SNMP=/proc/net/snmp
# shellcheck source=vip-check.sh disable=SC2154 # here: the folder of run.sh
source "$here/vip-check.sh"
# shellcheck source=keepalived.sh disable=SC2154
source "$here/keepalived.sh"

# All that is wrong at once, before anything is written.
refuse_wrong_machine() {
  local found problems=()
  found=$(ip -o -4 addr show | awk -v address="$ADDRESS/" 'index($4, address) == 1 {print $2}' | xargs)
  [[ " $found " == *" $INTERFACE "* ]] ||
    problems+=("address $ADDRESS is on interface ${found:-none}, not on $INTERFACE (frontDoors.vip.interface)")
  if [[ -s $KEEPALIVED ]] && ! grep -q '^# kube-ha' "$KEEPALIVED"; then
    problems+=("keepalived serves something of somebody else here ($KEEPALIVED)")
  fi
  [[ -s $SECRET ]] || problems+=("$SECRET, the password of VRRP, is missing")
  ((${#problems[@]} == 0)) || die "cannot hold the virtual IP ${VIP%:*}: $(
    IFS=';'
    printf '%s' "${problems[*]}"
  )" "correct the config or the machine, then run pulumi up again; nothing was changed"
}

# Where another machine answers for it already, two would have it: one of somebody else, or of another cluster.
refuse_taken() {
  local answer
  if [[ -f $STATE/keepalived.service.sum ]]; then return; fi
  # ours: by the cluster's own CA
  if answer=$(curl -s --max-time 3 --noproxy '*' --cacert "$MEMBER_CA" "https://$VIP/version" -o /dev/null \
    -w '%{http_code}' 2>&1); then
    return
  fi
  if command -v ping >/dev/null && ping -c 1 -W 1 "${VIP%:*}" >/dev/null 2>&1; then
    die "${VIP%:*} answers already, and not as this cluster ($answer)" \
      "choose a free address for frontDoors.vip, or take it from the machine that has it"
  fi
}
has_virtual_ip() { [[ $(ip -o -4 addr show) == *" ${VIP%:*}/"* ]]; }

# Whoever has it tells this machine so: else keepalived would hear nothing here, and take the address while the other
# one has it.
hears_the_holder() {
  local holder before
  holder=$(held_elsewhere)
  if [[ -z $holder ]]; then return; fi
  before=$(unknown_packets)
  sleep 2.5 # adverts come once a second
  if (($(unknown_packets) > before)); then return; fi
  echo "the machine with hardware address $holder has it, and no advert of it (VRRP, protocol 112) comes here"
  return 1
}
expect_adverts() {
  # shellcheck disable=SC2034 # read by die
  local HINT="let protocol 112 through between the machines that can have the address; ip neigh on $NODE tells whose"
  HINT+=" that hardware address is: one that is not of this cluster any more has to give it up (systemctl stop"
  HINT+=" keepalived there). Then run pulumi up again; keepalived was not started here"
  wait_for 60 "adverts of the machine that has ${VIP%:*}" hears_the_holder
}
# Packets of a protocol that nobody here listens to, as VRRP is while keepalived does not run.
unknown_packets() {
  awk '$1 == "Ip:" {if (at) print $at; else for (i = 2; i <= NF; i++) if ($i == "InUnknownProtos") at = i}' "$SNMP"
}
# The hardware address of another machine that answers for it; empty where none does.
held_elsewhere() {
  if has_virtual_ip; then return; fi
  ip neigh flush to "${VIP%:*}" dev "$INTERFACE" >/dev/null 2>&1 || true # what is known may be of the holder before
  timeout 2 bash -c "</dev/tcp/${VIP%:*}/${VIP##*:}" 2>/dev/null || true # a port that is closed is an answer too
  ip -4 neigh show to "${VIP%:*}" dev "$INTERFACE" | sed -n 's/.* lladdr \([0-9a-f:]*\).*/\1/p'
}

# As keepalived will ask at its start; with whatever is wrong told here, and not in the journal.
is_listed_holder() {
  local status=0
  unlisted "$NODE" "$GENERATION_HERE" || status=$?
  case $status in
    0) echo "the list has no $NODE of generation $GENERATION_HERE" ;;
    2) echo "no clear answer of $LIST" ;;
  esac
  ((status == 1))
}

stop_keepalived() {
  if systemctl is-active -q keepalived || systemctl is-enabled -q keepalived; then
    systemctl disable -q --now keepalived
    rm -f "$STATE/keepalived.service.sum"
    changes=$((changes + 1))
    log "in maintenance: this machine does not run as standby for the virtual IP"
  fi
  finish
}
listens() { [[ -n $(ss -Hltn "src $VIP") ]]; }

main() {
  local new=${KEEPALIVED%/*}/.kube-ha.conf.new taken=""
  own
  refuse_wrong_machine
  wait_for 30 "HAProxy listening at $VIP" listens
  if [[ -n ${GENERATION_HERE:-} && ${RESTING:-} != 1 ]]; then
    wait_for 60 "$NODE among those that may hold the virtual IP" is_listed_holder
  fi
  if ! systemctl is-active -q keepalived; then taken=$(held_elsewhere); fi
  if [[ -n $taken ]]; then refuse_taken; fi
  mkdir -p "${KEEPALIVED%/*}"
  put 755 "$CHECK" <"$here/vip-check.sh"
  printf '%s\n' "$KEEPALIVED_CONF" >"$new"
  validated "$new"
  put 644 "$DROPIN" <<<"$KEEPALIVED_DROPIN"
  put 644 "$KEEPALIVED" <"$new"
  rm -f "$new"
  systemctl unmask -q keepalived
  if [[ ${RESTING:-} == 1 ]]; then
    stop_keepalived
    return
  fi
  if [[ -n $taken ]]; then expect_adverts; fi
  settle reload keepalived.service "$KEEPALIVED" "$DROPIN" "$SECRET"
  finish
}
