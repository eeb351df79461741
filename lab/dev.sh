#!/usr/bin/env bash
# `make dev`: applies the dev stack and says how to use the cluster.
set -euo pipefail
cd "$(dirname "$0")/.."
bash lab/environment.sh
# shellcheck disable=SC1091 # written just now
source .env
started=$SECONDS
pulumi stack select --create dev --non-interactive >/dev/null
pulumi up --stack dev --yes --skip-preview --non-interactive
(umask 077 && pulumi stack output kubeconfig --show-secrets --stack dev >.local/kubeconfig)
printf '\nCluster dev is up after %d s:\n\n' "$((SECONDS - started))"
kubectl get nodes -o wide
cat <<'END'

  source .env                    from here on plain pulumi and kubectl work in this shell
  kubectl get pods -A
Try next:
  pulumi config set --path 'kube-ha:pools.worker.count' 3 && pulumi up     one more worker
  pulumi up                      again: nothing to change
  make verify                    the acceptance check, at any time
  lab/machine.sh kill            (LAB=dev MACHINE=master-1) cut the power of a master; kubectl --context master-2 get nodes
  make clean                     destroy everything, nothing is left
END
