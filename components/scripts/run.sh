#!/usr/bin/env bash
# Entry of every command on a node: run.sh PHASE [ATTEMPT], values on stdin (NAME='quoted' lines, then `# end`).
# ATTEMPT only makes the command's text new, so that the engine runs it again after a failed or reverted change. Of
# leave it is a choice that has to be in the command itself, which is written down on the machine's first day: `leave
# keep` (see leave.sh).
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
phase=$1
values=$(cat)
if [[ ${values##*$'\n'} != "# end" ]]; then
  printf 'ERROR %s: only %d bytes of values arrived\n  do: the connection broke; run pulumi up again\n' "$(hostname)" \
    "${#values}"
  exit 1
fi
eval "$values"
# Of a phase that may have to go on after a reboot, and whose values are not secrets.
# shellcheck disable=SC2034 # read by os.sh
if [[ $phase == node ]]; then VALUES=$values; fi
unset values
# shellcheck source=lib.sh
source "$here/lib.sh"
# shellcheck disable=SC2034 # read by end_unheard
SESSION=$(session)
# lib.sh, the phase, and what the phase sources: as stacks/phases/scripts.py sums them up.
sum_of() {
  local sourced
  # shellcheck disable=SC2016 # the very text of the phase
  mapfile -t sourced < <(sed -n 's|^source "$here/\([a-z-]*\.sh\)"$|\1|p' "$here/$1.sh")
  (cd "$here" && cat lib.sh "$1.sh" "${sourced[@]}") | sha256sum | cut -c1-16
}
# Some commands run once, and the engine keeps their text and connection from that day. Whatever makes it run one again
# later, another version of a provider say, what the text tells is so no longer: members, versions, who was lost. Texts
# without an end are of versions of kube-ha that wrote none.
why_over() {
  local end=${UNTIL:-${BOOTSTRAP_UNTIL:-}}
  if [[ -z $end && $phase =~ ^(join|mint|retire|wave)$ ]]; then
    echo "what it was told is of an earlier version of kube-ha"
  elif [[ -n $end ]] && (($(date +%s) >= end)); then
    echo "what it was told ended at $(date -u -d "@$end" +%FT%TZ), and the clock here says $(date -u +%FT%TZ)"
  fi
}
over=$(why_over)
if [[ -n $over ]]; then
  log "nothing is done: this command of phase $phase runs once, and $over"
  exit 0
fi
# Leaving and the preflight keep the values of a machine's first day, the timer of backups those of the last change
# (SCRIPT_SUM=kept), and work with whatever scripts are here; every other phase must be the one that the plan was made
# with.
if [[ $phase != leave && $phase != preflight && ${SCRIPT_SUM:-} != kept && $(sum_of "$phase") != "$SCRIPT_SUM" ]]; then
  die "the scripts in $here are not those of this plan" \
    "run pulumi up again: it copies them again; if that does not help, raise converge.generation"
fi
# shellcheck disable=SC2034 # read by leave.sh
if [[ $phase == leave && ${2:-} == keep ]]; then KEEP=1; fi
# shellcheck disable=SC1090 # one of the phases beside this file
source "$here/$phase.sh"
main </dev/null
