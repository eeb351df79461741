# shellcheck shell=bash
# Makes this master none of those that can hold the virtual IP, nor of those that end TLS there: load balancers do both.
# They take the address once every master has come to the end of this phase.
# Variables: VIP (address:port), OWN_FAILOVER (1: not keepalived moves the address), GENERATION (a trigger).
# shellcheck source=wipe.sh disable=SC2154 # here: the folder of run.sh
source "$here/wipe.sh"
# shellcheck source=doors.sh disable=SC2154
source "$here/doors.sh"

virtual_ip_gone() {
  local found
  found=$(ip -o -4 addr show)
  [[ $found != *" ${VIP%:*}/"* ]] || {
    printf '%s\n' "$found"
    return 1
  }
}

main() {
  own
  without_vip
  without_ingress
  # With failover of the user's own it may be here.
  if [[ ${OWN_FAILOVER:-} != 1 ]]; then
    wait_for 15 "the virtual IP ${VIP%:*} gone from this machine" virtual_ip_gone
  fi
  finish
}
