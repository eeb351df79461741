#!/usr/bin/env bash
# Entry of every command on a node: run.sh PHASE [ATTEMPT], values on stdin (NAME='quoted' lines, then `# end`).
# ATTEMPT only makes the command's text new, so that the engine runs it again after a failed or reverted change.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
phase=$1
values=$(cat)
if [[ ${values##*$'\n'} != "# end" ]]; then
  printf 'ERROR %s: only %d bytes of values arrived\n  do: the connection broke; run pulumi up again\n' "$(hostname)" "${#values}"
  exit 1
fi
eval "$values"
unset values
# shellcheck source=lib.sh
source "$here/lib.sh"
# Leaving and the preflight keep the values of a machine's first day, and work with whatever scripts are here; every other phase must be
# the one that the plan was made with.
if [[ $phase != leave && $phase != preflight && $(cat "$here/lib.sh" "$here/$phase.sh" | sha256sum | cut -c1-16) != "$SCRIPT_SUM" ]]; then
  die "the scripts in $here are not those of this plan" "run pulumi up again: it copies them anew; if that does not help, raise converge.generation"
fi
# shellcheck disable=SC1090 # one of the phases beside this file
source "$here/$phase.sh"
main </dev/null
