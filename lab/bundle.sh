#!/usr/bin/env bash
# The bundle of the pinned versions as .local/bundle, with all that a stack of this checkout needs: bundle.sh STACK
# [WORD of python -m artifacts.bundle ...]. A stack file that has problems asks for nothing: preview and up list them.
set -euo pipefail
cd "$(dirname "$0")/.."
stack=$1
also=()
if [[ -f Pulumi.$stack.yaml ]] && words=$(.venv/bin/python -m operations.bundle_words "$stack"); then
  for word in $words; do also+=(--also "$word"); done
fi
exec .venv/bin/python -m artifacts.bundle --link .local/bundle "${also[@]}" "${@:2}"
