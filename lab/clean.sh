#!/usr/bin/env bash
# `make clean`: destroys the dev stack and whatever of this checkout's labs is left; what stays is named.
# Refuses while another stack has resources: the only copy of its state, with its CA keys, would go with .local.
set -euo pipefail
shopt -s inherit_errexit
cd "$(dirname "$0")/.."
cache=${KUBE_HA_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/kube-ha}

# Read from the files, as the engine may be gone already. Compressed ones are written when
# PULUMI_SELF_MANAGED_STATE_GZIP is set.
state_files() {
  if [[ -d .local/state/.pulumi/stacks ]]; then
    find .local/state/.pulumi/stacks -type f \( -name '*.json' -o -name '*.json.gz' \) | sort
  fi
}

stack_of() { # stack_of STATE_FILE
  local name=${1##*/}
  name=${name%.gz}
  echo "${name%.json}"
}

# Whether a state holds more than the stack itself: resources, or some that a killed run was about to make. Exit code 1
# is no; all others but 0: it cannot be told.
has_resources() { # has_resources STATE_FILE
  local text
  text=$(zcat -f "$1") || return 2
  jq -e '.checkpoint.latest // {}
    | [.resources[]? | select(.type != "pulumi:pulumi:Stack")] + (.pending_operations // [])
    | length > 0' <<<"$text" >/dev/null
}

refuse_other_stacks() {
  local file name code answer bad=0
  while read -r file; do
    name=$(stack_of "$file")
    if [[ -z $file || $name == dev ]]; then continue; fi
    code=0
    answer=$(has_resources "$file" 2>&1) || code=$?
    case $code in
      0)
        printf 'ERROR clean: stack %s still has resources, and its only state is in .local/state; ' "$name"
        printf 'nothing was removed\n  do: source .env; pulumi state unprotect --all --stack %s; ' "$name"
        printf 'pulumi destroy --stack %s, then make clean\n' "$name"
        ;;
      1) continue ;;
      *)
        printf 'ERROR clean: %s cannot be read (%s), so stack %s may have resources; nothing was removed\n' \
          "$file" "${answer##*$'\n'}" "$name"
        printf '  do: see that jq is there (lab/host.sh install); if the stack is not needed, move the file away\n'
        ;;
    esac >&2
    bad=1
  done <<<"$files"
  if ((bad)); then exit 1; fi
}

destroy_dev() {
  if [[ ! -f .env || ! -x .local/bin/pulumi || -z $files ]]; then return; fi
  # shellcheck disable=SC1091 # written by make dev
  source .env
  if pulumi stack select dev --non-interactive >/dev/null 2>&1; then
    pulumi cancel --yes --stack dev >/dev/null 2>&1 || true # a lock of a killed run, if there is one
    pulumi destroy --stack dev --yes --skip-preview --non-interactive || destroy_failed
  fi
}

# Containers can be removed by force; machines that were adopted keep their cluster, whose only state is here.
destroy_failed() {
  if ! grep -q '^ *provider: lab' Pulumi.dev.yaml; then
    printf 'ERROR clean: %s\n  do: %s\n' "stack dev is not of the lab and could not be destroyed; its state is kept" \
      "fix what destroy reported above, then make clean" >&2
    exit 1
  fi
  printf 'destroy did not end well; the containers are removed by force\n' >&2
}

# The engine refuses a salt of another passphrase. Stacks that this backend does not know have another one, and keep it.
forget_passphrase() {
  local file name
  while read -r file; do
    name=Pulumi.$(stack_of "$file").yaml
    if [[ ! -f $name ]]; then continue; fi
    sed -i '/^encryptionsalt: /d' "$name"
    if grep -q '^ *secure: ' "$name"; then
      printf '%s: its secret values cannot be read any more; set them again\n' "$name"
    fi
  done <<<"$files"$'\n'dev.json
}

main() {
  local files
  files=$(state_files)
  refuse_other_stacks
  destroy_dev
  bash lab/machine.sh purge
  forget_passphrase # before the passphrase itself: cut off in between, the engine makes a new salt for the old one
  rm -rf .local .env .venv
  cat <<END
Clean: machines, machine images and all that make put into this checkout are gone. What stays on this computer:
  $cache   built and downloaded artefacts; rm -rf it to free the space
  Debian packages, kernel modules and fs.inotify.max_user_instances, as lab/host.sh install left them
END
}
main
