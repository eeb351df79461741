#!/usr/bin/env bash
# `make dev`: applies the dev stack and says how to use the cluster.
set -euo pipefail
shopt -s inherit_errexit
cd "$(dirname "$0")/.."
# shellcheck source=lab/engine.sh
source lab/engine.sh
locks=.local/state/.pulumi/locks/organization/kube-ha/dev

# A killed engine leaves its lock. It is taken away only if the process is surely gone; one that runs is somebody's.
release_dead_lock() {
  local lock pid host
  for lock in "$locks"/*.json; do
    [[ -f $lock ]] || continue # none, or its owner has just ended
    # A lock that is cut off names nobody, and counts as somebody's.
    pid=$(jq -r .pid "$lock" 2>/dev/null || true) host=$(jq -r .hostname "$lock" 2>/dev/null || true)
    if [[ $host != "$(uname -n)" || $(cat "/proc/$pid/comm" 2>/dev/null) == pulumi ]]; then
      die "another pulumi works on stack dev (process $pid on $host)" \
        "wait for it; if it is dead: source .env; pulumi cancel --yes --stack dev"
    fi
    printf 'the last run was killed (process %s): its lock is taken away\n' "$pid"
    rm -f "$lock"
  done
}

# Names of machines and contexts come from the config, which is the user's to change.
hints() {
  cat <<'END'

  source .env                    from here on plain pulumi and kubectl work in this shell
  kubectl get pods -A
Try next:
  pulumi config set --path 'kube-ha:pools.worker.count' 3 && pulumi up     one more worker
  pulumi up                      again: nothing to change
  make verify                    the acceptance check, at any time
END
  addon_hints
  lab_hints
  cat <<'END'
  make dev                       also renews .local/kubeconfig, after masters came or went
  make clean                     destroy everything
END
}

addon_hints() {
  local words
  words=$'\n'$(.venv/bin/python -m operations.bundle_words dev)$'\n'
  if [[ $words == *$'\naddon=prometheus\n'* ]]; then
    echo "  make dashboard                 the cluster on one screen: metrics and alerts"
  fi
  if [[ $words == *$'\naddon=logs\n'* ]]; then
    echo "  make logs UNIT=kubelet         logs of all nodes out of one store"
  fi
  if [[ $words == *$'\naddon=metrics-server\n'* ]]; then
    echo "  kubectl top nodes              what nodes use"
  fi
}

lab_hints() {
  local masters context lab=''
  mapfile -t masters < <(pulumi stack output nodes --json --stack dev |
    jq -r 'to_entries[] | select(.value.roles | index("master")) | .key')
  while read -r context; do # CLUSTER-MACHINE, and the lab is called as the cluster
    if [[ $context == *-"${masters[0]}" ]]; then lab=${context%-"${masters[0]}"}; fi
  done < <(kubectl config get-contexts -o name)
  if [[ -z $lab ]]; then return; fi
  if ((${#masters[@]} > 1)); then
    printf '  LAB=%s MACHINE=%s lab/machine.sh kill     cut the power of a master, then ask another one:\n' "$lab" \
      "${masters[0]}"
    printf '    kubectl --context %s-%s get nodes\n' "$lab" "${masters[1]}"
  fi
  printf \
    '  LAB=%s lab/machine.sh lab-start     after that, or a reboot of this computer: mirror and machines run again\n' \
    "$lab"
}

main() {
  local started=$SECONDS
  bash lab/environment.sh
  # shellcheck disable=SC1091 # written just now
  source .env
  release_dead_lock
  pulumi stack select --create dev --non-interactive >/dev/null
  .venv/bin/python -m operations.up dev --yes
  (umask 077 && pulumi stack output kubeconfig --show-secrets --stack dev >.local/kubeconfig)
  printf '\nCluster dev is up after %d s:\n\n' "$((SECONDS - started))"
  kubectl get nodes -o wide
  hints
}
main
