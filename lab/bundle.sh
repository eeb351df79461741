#!/usr/bin/env bash
# The bundle of the pinned versions as .local/bundle, with all that a stack of this checkout needs: bundle.sh STACK
# [WORD of python -m artifacts.bundle ...]. Of stack dev a file that has problems asks for nothing, so that set-up can
# end; for another one there is no bundle then, for it would lack what somebody carries it for.
set -euo pipefail
shopt -s inherit_errexit
cd "$(dirname "$0")/.."
# shellcheck source=lab/engine.sh
source lab/engine.sh
stack=$1
also=()
if words=$(.venv/bin/python -m operations.bundle_words "$stack"); then
  for word in $words; do also+=(--also "$word"); done
elif [[ $stack != dev ]]; then
  exit 1
fi
served=$(readlink -f .local/bundle || true)
.venv/bin/python -m artifacts.bundle --link .local/bundle "${also[@]}" "${@:2}"
if [[ ! -d $served || $served == "$(readlink -f .local/bundle)" ]]; then exit; fi
# Where there can be no lab, nobody has to be asked for one.
if engine_name >/dev/null && as_root true 2>/dev/null; then
  FROM=$served BUNDLE=.local/bundle bash lab/machine.sh lab-serve
fi
