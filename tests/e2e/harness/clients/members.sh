#!/usr/bin/env bash
# Looks at etcd's members several times a second until FOLDER/stop is there. Each look is one line on stdout: when it
# asked for the list and when it had it (ms of the epoch), then a word for each member, or no word at all where nobody
# with a quorum answered. A word is "id,name,voter or learner,answers or silent" (name -: not started yet).
#   members.sh FOLDER     in FOLDER: ca.crt, client.crt, client.key; doors (words host:port, those to ask first)
set -euo pipefail
folder=$1
read -ra doors <"$folder/doors"

now() { REPLY=${EPOCHREALTIME//[.,]/} REPLY=${REPLY%???}; }
ask() {
  curl -s --noproxy '*' --cacert "$folder/ca.crt" --cert "$folder/client.crt" --key "$folder/client.key" "$@"
}

# Rows: id, name, voter or learner, host:port of its clients (-: not started).
members() {
  local door
  for door in "${doors[@]}"; do
    if ask -f --max-time 1 -d '{"linearizable":true}' "https://$door/v3/cluster/member/list" |
      jq -re '.members[] | [.ID, .name // "-", (if .isLearner then "learner" else "voter" end),
        ((.clientURLs // ["https://-"])[0][8:])] | join(" ")' 2>/dev/null; then
      return
    fi
  done
}

# /version needs no quorum: who is silent here is down, whatever the others do.
silent() { # silent HOST:PORT...: those that do not answer
  local door arguments=()
  for door in "$@"; do
    if [[ $door == - ]]; then continue; fi
    if ((${#arguments[@]})); then arguments+=(--next); fi
    # shellcheck disable=SC2054 # a comma of curl's
    arguments+=(-s --noproxy '*' --cacert "$folder/ca.crt" --cert "$folder/client.crt" --key "$folder/client.key"
      --max-time 2 -o /dev/null -w "%{http_code} $door\n" "https://$door/version")
  done
  # One that is down fails curl as a whole; what counts is printed for each.
  if ((${#arguments[@]})); then { curl -Z "${arguments[@]}" 2>/dev/null || true; } | awk '$1 != 200 {print $2}'; fi
}

look() {
  local start listed rows id name role door down words="" known=()
  now
  start=$REPLY
  rows=$(members || true) # none is told as none
  now
  listed=$REPLY
  if [[ -n $rows ]]; then
    mapfile -t known < <(awk '{print $4}' <<<"$rows")
    down=" $(silent "${known[@]}" | xargs) "
    while read -r id name role door; do
      if [[ $door == - || $down == *" $door "* ]]; then
        words+=" $id,$name,$role,silent"
      else
        words+=" $id,$name,$role,answers"
      fi
    done <<<"$rows"
    doors=("${known[@]/#-/127.0.0.1:1}")
  fi
  printf '%s %s%s\n' "$start" "$listed" "$words"
}

while [[ ! -e $folder/stop ]]; do
  look
  sleep 0.05
done
