#!/usr/bin/env bash
# Whether this machine has an address, ten times a second until FOLDER/stop is there; a line for each change and five
# times a second: ms of the epoch, 1 or 0; the first one says `begun` in its place, for this machine may have been dead
# before.
#   holds.sh ADDRESS FOLDER
set -euo pipefail
address=$1 folder=$2 told=- at=0
printf '0 begun\n'
while [[ ! -e $folder/stop ]]; do
  now=${EPOCHREALTIME//[.,]/} now=${now%???}
  has=0
  if [[ $(ip -o -4 addr show) == *" $address/"* ]]; then has=1; fi
  if [[ $has != "$told" ]] || ((now - at > 190)); then
    printf '%s %s\n' "$now" "$has"
    told=$has at=$now
  fi
  sleep 0.1
done
