#!/usr/bin/env bash
# What systemd runs whenever etcd has stopped (ExecStopPost of etcd.service). A member that the others have removed never serves again. The API server
# that asks it alone would answer from its cache for a minute and more, and whoever watches by it would see a cluster that stands still: it ends at once.
# etcd-member.sh brings it back where the machine becomes a member again.
set -euo pipefail
manifest=${ROOT:-}/etc/kubernetes/manifests/kube-apiserver.yaml
aside=${ROOT:-}/var/lib/kube-ha/aside.removed

journalctl --sync || true # what it said last may be on its way
said=$(journalctl -q -o cat -n 200 "_SYSTEMD_INVOCATION_ID=${INVOCATION_ID:-none}")
if [[ $said != *"permanently removed from the cluster"* || ! -f $manifest ]]; then exit 0; fi
if [[ $(<"$manifest") != *--etcd-servers=https://127.0.0.1:2379$'\n'* ]]; then exit 0; fi # it asks others, too
install -d -m 700 "$aside"
mv -f "$manifest" "$aside/"
echo "etcd was removed from its cluster: the API server beside it ends"
pkill -KILL -x kube-apiserver || true
