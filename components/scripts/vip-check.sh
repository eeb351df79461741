#!/usr/bin/env bash
# Whether this machine may hold the virtual IP; keepalived asks it, on its own and with nothing but what is on this
# machine.
#   vip-check haproxy       0: its HAProxy answers. Nothing is asked of the API behind it
# vip-check member NODE   1: the cluster says that this machine is not NODE (any more). Whatever else it says, or if it
# says nothing: 0
#   vip-check start NODE    the same, but waits some seconds for an answer first: at boot HAProxy needs a moment
# On a load balancer, which is not a Node, the cluster keeps a list of those that may hold it, by name and generation:
# vip-check member NODE GENERATION        1: the list has no such entry. Whatever else is answered: 0 vip-check start
# NODE GENERATION DOOR    the same after some seconds; without a clear word also 1 where another machine answers at DOOR
# (address:port): what this machine shows may have ended while it was unavailable, and nobody waits for it as long as
# another one serves Installed by phase vip, which sources it too: only definitions, unless it is run.
SOCKET=/run/haproxy/admin.sock
MEMBER_IDENTITY=/var/lib/kubelet/pki/kubelet-client-current.pem
MEMBER_CA=/etc/kube-ha/ca.crt
MEMBER_API=https://127.0.0.1:3446
LISTED_IDENTITY=/etc/kube-ha/load-balancer # .crt and .key
LIST=$MEMBER_API/api/v1/namespaces/kube-system/configmaps/kube-ha-vip-holders

haproxy_answers() {
  local answer
  answer=$(socat -t 3 - "UNIX-CONNECT:$SOCKET" <<<"show version" 2>/dev/null) || return 1
  [[ -n $answer ]]
}

# told_to_go NODE [GENERATION]: 0 the cluster has no such Node or entry, or it is another machine; 1 it is this one; 2
# no clear word.
told_to_go() {
  if [[ -n ${2:-} ]]; then unlisted "$@"; else no_such_node "$1"; fi
}
unlisted() {
  local answer status listed
  answer=$(curl -s --max-time 5 --noproxy '*' --cacert "$MEMBER_CA" --cert "$LISTED_IDENTITY.crt" \
    --key "$LISTED_IDENTITY.key" -w '\n%{http_code}' "$LIST" 2>/dev/null) || return 2
  status=${answer##*$'\n'}
  # A list that is gone was taken away by hand: that says nothing of this machine.
  if [[ $status != 200 ]]; then return 2; fi
  listed=$(jq -r --arg name "$1" \
    'if .kind == "ConfigMap" then .data[$name] // "none" else "" end' <<<"${answer%$'\n'*}" 2>/dev/null) || return 2
  if [[ -z $listed ]]; then return 2; fi
  [[ $listed != "$2" ]]
}
no_such_node() {
  local answer status id
  answer=$(curl -s --max-time 5 --noproxy '*' --cacert "$MEMBER_CA" --cert "$MEMBER_IDENTITY" -w '\n%{http_code}' \
    "$MEMBER_API/api/v1/nodes/$1" 2>/dev/null) || return 2
  status=${answer##*$'\n'}
  if [[ $status == 404 && $answer == *'"reason":'*'"NotFound"'* ]]; then return 0; fi
  if [[ $status != 200 ]]; then return 2; fi
  id=$(jq -r '.status.nodeInfo.machineID // ""' <<<"${answer%$'\n'*}" 2>/dev/null) || return 2
  if [[ -z $id ]]; then return 2; fi
  [[ $id != "$(cat /etc/machine-id)" ]]
}

answers() { timeout 2 bash -c "</dev/tcp/${1%:*}/${1##*:}" 2>/dev/null; } # answers ADDRESS:PORT

vip_check() {
  local word=$1 node=${2:-} generation=${3:-} door=${4:-} status=2 end=$((SECONDS + 10))
  case $word in
    haproxy) haproxy_answers ;;
    member | start)
      while :; do
        status=0
        told_to_go "$node" "$generation" || status=$?
        if ((status < 2 || SECONDS >= end)) || [[ $word == member ]]; then break; fi
        sleep 1
      done
      if ((status == 0)); then
        printf 'the cluster knows no %s that is this machine: it does not hold the virtual IP\n' "$node"
        return 1
      fi
      if [[ $word == start && $status == 2 && -n $door ]] && answers "$door"; then
        printf 'another machine answers at %s, and the cluster does not say that %s may run as standby\n' "$door" \
          "$node"
        return 1
      fi
      ;;
    *) return 2 ;;
  esac
}

if [[ ${BASH_SOURCE[0]} == "$0" ]]; then
  set -uo pipefail
  PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
  vip_check "$@"
fi
