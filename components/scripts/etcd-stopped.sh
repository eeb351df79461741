#!/usr/bin/env bash
# What systemd runs whenever etcd has stopped (ExecStopPost of etcd.service). A member that the others have removed
# never serves again, nor does one whose data is not that of the cluster (etcd-guard.sh). The API server that asks it
# alone would answer from its cache for a minute and more, and whoever watches by it would see a cluster that stands
# still, or another one: it ends at once. etcd-member.sh brings it back where the machine becomes a member again.
set -euo pipefail
manifest=${ROOT:-}/etc/kubernetes/manifests/kube-apiserver.yaml
home=${HOME_DIR:-${ROOT:-}/var/lib/kube-ha}
aside=$home/aside.removed
refused=$home/state/etcd.refused
why="was removed from its cluster"

journalctl --sync || true # what it said last may be on its way
# A record of etcd's own, whole: others hold names that anybody may have given to something, and no quote in those is a
# bare one.
removed='^\{"level":"[a-z]+","ts":"[^"]*","caller":"[^"]*","msg":"server error",'
removed+='"error":"the member has been permanently removed from the cluster"\}$'
# none is an answer
said=$(journalctl -q -o cat -n 200 "_SYSTEMD_INVOCATION_ID=${INVOCATION_ID:-none}" | grep -Ecx "$removed" || true)
what=""
if [[ -f $refused ]]; then read -r what _ <"$refused" || true; fi
if [[ $what == older || $what == foreign ]]; then
  why="may not serve what it has ($what)"
elif [[ $said == 0 ]]; then
  exit 0
fi
if [[ ! -f $manifest ]]; then exit 0; fi
if [[ $(<"$manifest") != *--etcd-servers=https://127.0.0.1:2379$'\n'* ]]; then exit 0; fi # it asks others, too
install -d -m 700 "$aside"
mv -f "$manifest" "$aside/"
echo "etcd $why: the API server beside it ends"
pkill -KILL -x kube-apiserver || true
