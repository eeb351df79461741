#!/usr/bin/env bash
# Writes .env, with which plain pulumi and kubectl work in this checkout, and the files it names. Changes nothing that
# is there.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p .local/state .local/pulumi
if [[ ! -s .local/passphrase ]]; then
  # The salt of another passphrase, which is gone: the engine would refuse the new one. First, as a run that is killed
  # in between would leave it forever.
  sed -i '/^encryptionsalt: /d' Pulumi.dev.yaml
  (umask 077 && head -c 24 /dev/urandom | base64 >.local/passphrase)
fi
cat >.env.new <<END
# source .env: pulumi and kubectl of this checkout, its local backend, and the dev cluster's kubeconfig.
export PATH="$PWD/.local/bin:$PWD/.venv/bin:\$PATH"
export PULUMI_HOME="$PWD/.local/pulumi"
# metadata=skip: no side files, half of which a kill -9 of the engine could leave as a state that nobody can read.
export PULUMI_BACKEND_URL="file://$PWD/.local/state?metadata=skip"
export PULUMI_CONFIG_PASSPHRASE_FILE="$PWD/.local/passphrase"
export PULUMI_SKIP_UPDATE_CHECK=true
export PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION=true
export KUBECONFIG="$PWD/.local/kubeconfig"
END
mv .env.new .env
