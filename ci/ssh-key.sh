#!/usr/bin/env bash
# ci/ssh-key.sh COMMAND...: runs it with an SSH agent that holds the private key in KUBE_HA_SSH_KEY; without one, as it
# is. The key is in no file and no argument; the agent serves only as long as the command runs, which does not see the
# variable.
set -euo pipefail

if [[ -z ${KUBE_HA_SSH_KEY:-} ]]; then
  unset KUBE_HA_SSH_KEY
  exec "$@"
fi

add_key() {
  if ! printf '%s\n' "$KUBE_HA_SSH_KEY" | ssh-add -q -; then
    printf 'ERROR ssh-key: %s\n  do: %s\n' "KUBE_HA_SSH_KEY is not a private key that opens without a passphrase" \
      'ssh-keygen -t ed25519 -N "" -f FILE, and store the text of FILE' >&2
    exit 1
  fi
}

if [[ ${1:-} == --agent ]]; then
  shift
  add_key
  unset KUBE_HA_SSH_KEY
  exec "$@"
fi
exec ssh-agent bash "$0" --agent "$@"
