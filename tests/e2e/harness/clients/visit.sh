#!/usr/bin/env bash
# A visitor: asks for pages by HTTPS, one after another, by a connection of its own each, until FOLDER/stop is there.
# What is not a page of that host is asked for once more. Lines on stdout as those of count.sh: number, read, start and
# end (ms of the epoch), HTTP status (000: no answer), - - and the URL.
# visit.sh FOLDER     in FOLDER: ca.crt; doors (words URL=address=word: where that URL's host is to be found, and what
# its page begins with; read again for each
#                        visit); pause (seconds)
set -euo pipefail
folder=$1
pause=$(<"$folder/pause")
visit=0

now() { REPLY=${EPOCHREALTIME//[.,]/} REPLY=${REPLY%???}; }

ask() { # ask URL ADDRESS WORD: sets status
  local host=${1#https://}
  host=${host%%/*}
  status=$(curl -s --noproxy '*' --connect-timeout 3 --max-time 8 --cacert "$folder/ca.crt" --resolve "$host:443:$2" \
    -o "$folder/answer" -w '%{http_code}' "$1") || status=000
  if [[ $status == 200 && $(<"$folder/answer") != "$3"* ]]; then status=418; fi # a page, but another one's
}

main() {
  local doors url address word start
  while [[ ! -e $folder/stop ]]; do
    read -ra doors <"$folder/doors"
    IFS='=' read -r url address word <<<"${doors[visit % ${#doors[@]}]}"
    visit=$((visit + 1))
    for _ in 1 2; do
      now
      start=$REPLY
      ask "$url" "$address" "$word"
      now
      printf '%s read %s %s %s - - %s\n' "$visit" "$start" "$REPLY" "$status" "$url"
      if [[ $status == 200 ]]; then break; fi
    done
    sleep "$pause"
  done
}
main
