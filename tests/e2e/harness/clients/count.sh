#!/usr/bin/env bash
# A client that counts: reads a number, then writes the next one if nobody has changed it since, again and again, until
# FOLDER/stop is there. What is not a good answer is asked once more, at the next door. Each attempt is one line on
# stdout: number of the operation, read or write, start and end (ms of the epoch), HTTP status (000: no answer; 409:
# somebody else has changed it), the number that was there, the number read or written (-: none). etcd-door: etcd at one
# door that points to whichever member answers, so that nobody has to be followed.
# count.sh api|etcd|etcd-door FOLDER     in FOLDER: ca.crt, client.crt, client.key; doors (words host:port; read again
# for each attempt);
# key (name of the number; in the API a ConfigMap of the namespace default); pause (seconds)
set -euo pipefail
kind=${1%-door} folder=$2
follows=$([[ $1 != etcd ]] || echo 1)
key=$(<"$folder/key") pause=$(<"$folder/pause")
operation=0 turn=0 highest=0
status=000 version=0 value=-

now() { REPLY=${EPOCHREALTIME//[.,]/} REPLY=${REPLY%???}; }

ask() { # ask ARGUMENT...: sets status; the answer is in FOLDER/answer
  status=$(curl -s --noproxy '*' --connect-timeout "$connect_s" --max-time 8 --cacert "$folder/ca.crt" \
    --cert "$folder/client.crt" --key "$folder/client.key" \
    -o "$folder/answer" -w '%{http_code}' "$@") || status=000 # half an answer is none
}
field() { jq -r "$1" "$folder/answer"; }

url_api=/api/v1/namespaces/default/configmaps
object() {
  printf '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"%s"%s},"data":{"n":"%s"}}' "$key" "$1" "$2"
}
found_api() { ask -X POST -H 'Content-Type: application/json' -d "$(object '' 0)" "https://$1$url_api"; }
read_api() {
  ask "https://$1$url_api/$key" # without a resource version: the newest, by a quorum
  if [[ $status == 200 ]]; then read -r version value < <(field '"\(.metadata.resourceVersion) \(.data.n)"'); fi
}
write_api() { # write_api DOOR NUMBER
  ask -X PUT -H 'Content-Type: application/json' -d "$(object ",\"resourceVersion\":\"$version\"" "$2")" \
    "https://$1$url_api/$key"
}

# etcd by JSON, as its gateway takes it: keys and values in base64.
name_etcd=$(printf %s "$key" | base64 -w 0)
found_etcd() { status=200; } # a key that is not there is 0
read_etcd() {
  ask -d "{\"key\":\"$name_etcd\"}" "https://$1/v3/kv/range"
  if [[ $status == 200 ]]; then
    read -r version value < <(field '.kvs[0] // {} | "\(.mod_revision // 0) \(.value // "MA==" | @base64d)"')
  fi
}
write_etcd() {
  local compare put
  compare="{\"key\":\"$name_etcd\",\"target\":\"MOD\",\"result\":\"EQUAL\",\"mod_revision\":\"$version\"}"
  put="{\"request_put\":{\"key\":\"$name_etcd\",\"value\":\"$(printf %s "$2" | base64 -w 0)\"}}"
  ask -d "{\"compare\":[$compare],\"success\":[$put]}" "https://$1/v3/kv/txn"
  if [[ $status == 200 && $(field .succeeded) != true ]]; then status=409; fi
}

door() { # sets REPLY and connect_s
  local doors
  read -ra doors <"$folder/doors"
  REPLY=${doors[turn % ${#doors[@]}]}
  # Who has several doors continues to the next; the only one is a load balancer, which looks for another master after 2
  # s itself.
  connect_s=$((${#doors[@]} > 1 ? 2 : 6))
}
answered() { [[ $status == 20? || $status == 409 ]]; }

# operate read|write: fails where the second attempt has no answer either.
operate() {
  local at start end wanted=- base=-
  operation=$((operation + 1))
  if [[ $1 == write ]]; then
    base=$value wanted=$((highest > value ? highest + 1 : value + 1))
    highest=$wanted # a number whose fate is unknown is never used again
  fi
  for _ in 1 2; do
    door
    at=$REPLY
    now
    start=$REPLY
    "$1_$kind" "$at" "$wanted"
    now
    end=$REPLY
    if [[ $1 == read && $status == 200 ]]; then wanted=$value; fi
    printf '%s %s %s %s %s %s %s %s\n' "$operation" "$1" "$start" "$end" "$status" "$base" "$wanted" "$at"
    if answered; then return 0; fi
    turn=$((turn + 1))
    if [[ $follows ]]; then
      follow_members
      door
      if [[ $REPLY == "$at" ]]; then turn=$((turn + 1)); fi # the list may have them in another order now
    fi
  done
  return 1
}

# A client of etcd asks all members that vote in turn, and follows who they are: now and then, and where one has no
# answer.
follow_members() {
  local doors tries
  read -ra doors <"$folder/doors"
  for ((tries = 0; tries < ${#doors[@]}; tries++)); do
    door
    ask -d '{}' "https://$REPLY/v3/cluster/member/list"
    if [[ $status == 200 ]]; then
      field '[.members[] | select((.isLearner | not) and .name) | .clientURLs[0][8:]] | join(" ")' >"$folder/doors.new"
      if [[ -s $folder/doors.new ]]; then mv "$folder/doors.new" "$folder/doors"; fi
      return
    fi
    turn=$((turn + 1))
  done
}

main() {
  door
  until "found_$kind" "$REPLY" && answered; do
    sleep 0.5
    turn=$((turn + 1))
    door
  done
  while [[ ! -e $folder/stop ]]; do
    if operate read; then operate write || true; fi # a failure is told, and the next read tells what became of it
    if [[ $follows ]]; then
      turn=$((turn + 1))
      if ((operation % 10 < 2)); then follow_members; fi
    fi
    sleep "$pause"
  done
  # What was acknowledged has to be there in the end.
  for _ in 1 2 3 4 5; do
    if operate read; then break; fi
    sleep 1
  done
}
main
