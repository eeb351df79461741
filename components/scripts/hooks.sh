# shellcheck shell=bash
# The user's webhook, which is asked before a node is drained or released, and told when it takes pods again. It is
# called with the certificate of this machine's kubelet. Only definitions; phases source it, after cluster-reader.sh.
# What it is and which events it wants is in a file that phase node writes.
HOOKS_FILE=/etc/kube-ha/hooks.json

# What it is, as the config says now.
know_hooks() {
  if [[ -n ${HOOKS:-} ]]; then
    put 600 "$ROOT$HOOKS_FILE" <<<"$HOOKS"
  elif [[ -e $ROOT$HOOKS_FILE ]]; then
    rm -f "$ROOT$HOOKS_FILE"
    changes=$((changes + 1))
  fi
}

# tell_hook EVENT NODE REASON: returns once it has consented, or wants none of it. Without its consent a before... ends
# the phase; an after... is over, so that is a warning.
tell_hook() {
  local url limit end answer status
  if ! wants_event "$1"; then return; fi
  url=$(jq -r .url "$ROOT$HOOKS_FILE")
  limit=$(jq -r .timeoutS "$ROOT$HOOKS_FILE")
  if [[ $1 == after* ]] && ((limit > 30)); then limit=30; fi
  end=$((SECONDS + limit))
  log "asking the hook $1 of $2"
  while true; do
    answer=$(call_hook "$url" "$@" 2>&1)
    status=${answer##*$'\n'}
    if [[ $status == 2?? ]]; then return; fi
    answer="HTTP $status $(head -c 300 <<<"${answer%$'\n'*}" | paste -sd' ')"
    # Not yet, too many, unavailable, no answer: all else is a no.
    if [[ $status != 425 && $status != 429 && $status != 503 && $status != 000 ]]; then break; fi
    if ((SECONDS >= end)); then
      answer="no consent within $limit s; last answer: $answer"
      break
    fi
    sleep 2
  done
  if [[ $1 == after* ]]; then
    log "WARNING the hook $1 of $2 at $url: $answer"
    return
  fi
  die "the hook $1 of $2 at $url: $answer" \
    "$2 stays cordoned. See why the webhook says so, then run pulumi up again, which asks again; or take $1 out of" \
    "hooks.events"
}
wants_event() { # wants_event EVENT
  [[ -s $ROOT$HOOKS_FILE && $(jq -r --arg event "$1" '.events | index($event) != null' "$ROOT$HOOKS_FILE") == true ]]
}
# What it answers, and its HTTP status on the last line (000: none came).
call_hook() { # call_hook URL EVENT NODE REASON
  local body trust=() ca=$STATE/hooks-ca.crt
  body=$(jq -n --arg event "$2" --arg cluster "$CLUSTER" --arg node "$3" --arg by "$NODE" --arg reason "$4" \
    '{$event, $cluster, $node, $by, $reason}')
  if [[ -n $(jq -r .ca "$ROOT$HOOKS_FILE") ]]; then
    jq -r .ca "$ROOT$HOOKS_FILE" >"$ca"
    trust=(--cacert "$ca")
  fi
  # the status says it
  curl -sS --max-time 30 --max-filesize 65536 --noproxy '*' "${trust[@]}" --cert "$IDENTITY" -w '\n%{http_code}' \
    -H 'Content-Type: application/json' --data-binary "$body" "$1" || true
}
