#!/usr/bin/env bash
# What systemd runs at a boot when the machine went down while static pods of its control plane lay aside (aside.sh):
# they are put back. Nothing is taken away: the next phase that comes waits until they serve.
set -euo pipefail
manifests=${ROOT:-}/etc/kubernetes/manifests
for file in "${ROOT:-}"/var/lib/kube-ha/aside/*.yaml; do
  name=${file##*/}
  # An empty one is what the power cut has left of one that was being written.
  if [[ ! -s $file || -s $manifests/$name ]]; then continue; fi
  # A dot name, for kubelet runs every other file there.
  install -m 600 "$file" "$manifests/.$name.new"
  sync -d "$manifests/.$name.new"
  mv -f "$manifests/.$name.new" "$manifests/$name"
  echo "$name lay aside, and is back"
done
