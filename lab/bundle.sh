#!/usr/bin/env bash
# The bundle of the pinned versions as .local/bundle, with all that a stack of this checkout needs: bundle.sh STACK
# [WORD of python -m artifacts.bundle ...]. Of stack dev a file that has problems asks for nothing, so that set-up can
# end; for another one there is no bundle then, for it would lack what somebody carries it for.
set -euo pipefail
cd "$(dirname "$0")/.."
stack=$1
also=()
if words=$(.venv/bin/python -m operations.bundle_words "$stack"); then
  for word in $words; do also+=(--also "$word"); done
elif [[ $stack != dev ]]; then
  exit 1
fi
exec .venv/bin/python -m artifacts.bundle --link .local/bundle "${also[@]}" "${@:2}"
