#!/usr/bin/env bash
# Whether this machine may hold the virtual IP; keepalived asks it, on its own and with nothing but what lies on this machine.
#   vip-check haproxy       0: its HAProxy answers. Nothing is asked of the API behind it
#   vip-check member NODE   1: the cluster says that this machine is not NODE (any more). Whatever else it says, or if it says nothing: 0
#   vip-check start NODE    the same, but waits some seconds for an answer first: at boot HAProxy needs a moment
# Installed by phase vip, which sources it too: only definitions, unless it is run.
SOCKET=/run/haproxy/admin.sock
MEMBER_IDENTITY=/var/lib/kubelet/pki/kubelet-client-current.pem
MEMBER_CA=/etc/kube-ha/ca.crt
MEMBER_API=https://127.0.0.1:3446

haproxy_answers() {
  local answer
  answer=$(socat -t 3 - "UNIX-CONNECT:$SOCKET" <<<"show version" 2>/dev/null) || return 1
  [[ -n $answer ]]
}

# told_to_go NODE: 0 the cluster has no such Node, or it is another machine; 1 it is this one; 2 no clear word.
told_to_go() {
  local answer status id
  answer=$(curl -s --max-time 5 --noproxy '*' --cacert "$MEMBER_CA" --cert "$MEMBER_IDENTITY" -w '\n%{http_code}' "$MEMBER_API/api/v1/nodes/$1" 2>/dev/null) || return 2
  status=${answer##*$'\n'}
  if [[ $status == 404 && $answer == *'"reason":'*'"NotFound"'* ]]; then return 0; fi
  if [[ $status != 200 ]]; then return 2; fi
  id=$(jq -r '.status.nodeInfo.machineID // ""' <<<"${answer%$'\n'*}" 2>/dev/null) || return 2
  if [[ -z $id ]]; then return 2; fi
  [[ $id != "$(cat /etc/machine-id)" ]]
}

vip_check() {
  local word=$1 node=${2:-} status=2 end=$((SECONDS + 10))
  case $word in
    haproxy) haproxy_answers ;;
    member | start)
      while :; do
        status=0
        told_to_go "$node" || status=$?
        if ((status < 2 || SECONDS >= end)) || [[ $word == member ]]; then break; fi
        sleep 1
      done
      if ((status == 0)); then
        printf 'the cluster knows no Node %s that is this machine: it does not hold the virtual IP\n' "$node"
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
