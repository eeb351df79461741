#!/usr/bin/env bash
# `make clean`: destroys the dev stack and whatever of this checkout's labs is left; the cache stays and is named.
set -euo pipefail
cd "$(dirname "$0")/.."
cache=${KUBE_HA_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/kube-ha}
if [[ -f .env && -x .local/bin/pulumi && -d .local/state/.pulumi/stacks ]]; then
  # shellcheck disable=SC1091 # written by make dev
  source .env
  if pulumi stack select dev --non-interactive >/dev/null 2>&1; then
    pulumi cancel --yes --stack dev >/dev/null 2>&1 || true # a lock of a killed run, if there is one
    pulumi destroy --stack dev --yes --skip-preview --non-interactive || printf 'destroy did not end well; the containers are removed by force\n' >&2
  fi
fi
bash lab/machine.sh purge
rm -rf .local .env .venv
sed -i '/^encryptionsalt: /d' Pulumi.dev.yaml # of the passphrase that just went
printf 'Clean. The cache with built and downloaded artefacts stays: %s (rm -rf it to free the space)\n' "$cache"
