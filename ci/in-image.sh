#!/usr/bin/env bash
# ci/in-image.sh TARGET [VARIABLE=...]: entry of the tool's image; runs a make target on the stack files in /stacks.
# What a run leaves (previews, outputs, logs) is in /stacks/.local.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
stacks=${KUBE_HA_STACKS:-/stacks}

if [[ -d $stacks ]]; then
  for file in "$stacks"/Pulumi.*.yaml; do
    if [[ -f $file ]]; then ln -sfn "$file" "$here/${file##*/}"; fi
  done
  mkdir -p "$stacks/.local"
  for folder in backups log outputs preview; do
    mkdir -p "$stacks/.local/$folder"
    ln -sfn "$stacks/.local/$folder" "$here/.local/$folder"
  done
fi
exec make -s -C "$here" "$@"
