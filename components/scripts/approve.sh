#!/usr/bin/env bash
# shellcheck disable=SC2034 # judge.sh reads what is set here
# Approves two kinds of certificate requests, and nothing else. What a kubelet asks for to serve with: a certificate for
# the node's own name, and for the address that the stack's config gives that node (ConfigMap
# kube-system/kube-ha-addresses). What a machine that joins asks for to be known by: one of the names that join in this
# very update (kube-ha-joining), of which there is no Node that is alive. Neither may be written by a node. What it does
# not approve stays pending; why is in the journal, once for each reason. Names and texts of requests are whatever their
# authors like: a request counts only where every field that is used fits its form.
# Runs on every master as kube-ha-approver.service; several in parallel do no harm, and each starts again at any time.
# Its credential is a certificate of its own, of the user kube-ha:approver, who may do this alone.
# It also notes which certificates a node was given that follows one that was given up (credentials.sh). Installed by
# phase master behind judge.sh and credentials.sh, as one file; it sources all: only definitions, unless it is run.
APPROVER_API=https://127.0.0.1:3446
APPROVER_KEYS=/etc/kube-ha          # approver.crt, ca.crt; the key is what it is given to read
APPROVER_RUN=${RUNTIME_DIRECTORY:-} # its own, and gone when it ends
REQUESTS=/apis/certificates.k8s.io/v1/certificatesigningrequests
SETTINGS=/api/v1/namespaces/kube-system/configmaps
PAGE=500     # requests read at a time
PAGES=40     # who asks for more than these is not worth more
NEWEST=3     # requests judged of one kubelet: it waits for the last one
JOINERS=1000 # requests judged of all that join by one token
AT_ONCE=100  # requests approved before the list is read again: other masters approve others meanwhile

note() { printf '%s\n' "$*"; }

# Every reason once, however often it is met. Hostile nodes may make up many: then it starts again.
declare -A said=()
version="" # of the list that was read last
note_once() {
  local text
  text=$(tr -cd '[:print:]' <<<"$1" | cut -c 1-400)
  if [[ -n ${said[$text]:-} ]]; then return; fi
  if ((${#said[@]} >= 2000)); then said=(); fi
  said[$text]=1
  note "$text"
}

# What it was started with, for as long as it runs: phase master starts it again when one of them is replaced.
take_keys() {
  cat >"$APPROVER_RUN/key"
  cp "$APPROVER_KEYS"/{ca,approver}.crt "$APPROVER_RUN"
}
ask() { # ask exec|call CURL-WORD...
  local as=(curl -sS --globoff --noproxy '*' --cacert "$APPROVER_RUN/ca.crt" --cert "$APPROVER_RUN/approver.crt"
    --key "$APPROVER_RUN/key" "${@:2}")
  if [[ $1 == exec ]]; then exec "${as[@]}"; else "${as[@]}"; fi
}

# pending: requests that wait for a word, the newest of each user, into the file of that name, a line each with tabs
# between: user (- where it is neither a node nor a bootstrap token's), time, name, uid, version, signer, group (nodes,
# joiners or -), usages, PEM in base64. Kubelets that renew what they are known by are not kube-ha's business:
# Kubernetes approves that itself.
# shellcheck disable=SC2016 # jq's
FIELDS='
  def fits($form): if type == "string" and test("\\A(?:" + $form + ")\\z") then . else "-" end;
  .items[] | select((.status.certificate // "") == ""
    and ([.status.conditions[]? | select(.type == "Approved" or .type == "Denied" or .type == "Failed")] == []))
  | (.spec.username | fits("system:node:[a-z0-9.-]{1,253}|system:bootstrap:[a-z0-9]{6}")) as $user
  | (.spec.groups // []) as $groups
  | select(.spec.signerName == $serving
    or (.spec.signerName == $joining and ($user | startswith("system:node:") | not)))
  | [$user, (.metadata.creationTimestamp | fits("[0-9TZ:-]{1,30}")),
     (.metadata.name | fits("[A-Za-z0-9][A-Za-z0-9._-]{0,252}")), (.metadata.uid | fits("[0-9a-f-]{36}")),
     (.metadata.resourceVersion | fits("[0-9]{1,20}")), .spec.signerName,
     (if ($user | startswith("system:node:")) and any($groups[]; . == "system:nodes") then "nodes"
      elif ($user | startswith("system:bootstrap:"))
        and any($groups[]; . == "system:bootstrappers:kubeadm:default-node-token") then "joiners"
      else "-" end),
     (.spec.usages // [] | sort | join(",") | fits("[a-z ,]{1,200}")),
     (if (.spec.request | length) <= 20000 then .spec.request else "-" end | fits("[A-Za-z0-9+/=]+"))]
  | select(.[2] != "-" and .[3] != "-" and .[4] != "-") | join("\t")'
pending() {
  local next="" page
  : >"$APPROVER_RUN/all"
  for ((page = 0; page < PAGES; page++)); do
    ask call -f --max-time 60 -o "$APPROVER_RUN/page" \
      "$APPROVER_API$REQUESTS?limit=$PAGE${next:+&continue=$next}" 2>"$APPROVER_RUN/error" || return 1
    jq -r --arg serving "$SERVING_SIGNER" --arg joining "$JOINING_SIGNER" "$FIELDS" \
      "$APPROVER_RUN/page" >>"$APPROVER_RUN/all" 2>"$APPROVER_RUN/error" || return 1
    version=$(jq -r '.metadata.resourceVersion // "" | tostring | select(test("\\A[0-9]+\\z"))' "$APPROVER_RUN/page")
    next=$(jq -r '.metadata.continue // "" | @uri' "$APPROVER_RUN/page")
    if [[ -z $next ]]; then break; fi
  done
  sort -t $'\t' -k 1,1 -k 2,2r "$APPROVER_RUN/all" |
    awk -F '\t' -v node="$NEWEST" -v joiner="$JOINERS" '++seen[$1] <= ($1 ~ /^system:bootstrap:/ ? joiner : node)' |
    shuf >"$APPROVER_RUN/pending"
}

# setting NAME: that ConfigMap, into the file of that name; empty where there is none.
setting() {
  local status
  status=$(ask call --max-time 20 -o "$APPROVER_RUN/$1" -w '%{http_code}' \
    "$APPROVER_API$SETTINGS/$1" 2>"$APPROVER_RUN/error") || return 1
  if [[ $status == 404 ]]; then echo '{}' >"$APPROVER_RUN/$1"; elif [[ $status != 200 ]]; then
    echo "HTTP $status for ConfigMap $1" >"$APPROVER_RUN/error"
    return 1
  fi
}

# addresses: by name, what the config says, as 8 hexadecimal digits.
addresses() {
  local name address
  setting kube-ha-addresses || return 1
  domain=$(jq -r '.data.domain // ""' "$APPROVER_RUN/kube-ha-addresses")
  address_of=()
  while read -r name address; do
    address_of["$name"]=$address
  done < <(jq -r '.data.addresses // ""' "$APPROVER_RUN/kube-ha-addresses" | expand_addresses)
}

# joining: names that join now, and by which token.
joining() {
  local name
  setting kube-ha-joining || return 1
  joins=()
  joiner="system:bootstrap:$(jq -r '.data.token // ""' "$APPROVER_RUN/kube-ha-joining")"
  while read -r name; do
    joins["$name"]=1
  done < <(jq -r --argjson now "$(date +%s)" \
    '.data // {} | select((.until // "0" | tonumber) > $now) | .names // "" | split(" ")[]
      | select(test("\\A[a-z0-9][a-z0-9.-]*\\z"))' "$APPROVER_RUN/kube-ha-joining")
}
# is_alive NAME: why nobody else may be it; empty: there is no such Node, or nobody hears of it.
is_alive() {
  local status
  status=$(ask call --max-time 20 -o "$APPROVER_RUN/node" -w '%{http_code}' \
    "$APPROVER_API/api/v1/nodes/$1" 2>"$APPROVER_RUN/error")
  if [[ $status == 404 ]]; then return; fi
  if [[ $status != 200 ]]; then
    echo "the API does not say whether there is a Node $1 (HTTP $status)"
  elif jq -e 'any(.status.conditions[]?; .type == "Ready" and .status == "True")' "$APPROVER_RUN/node" >/dev/null; then
    echo "there is a Node $1, and it is Ready"
  fi
}

# approve: those of the file "approved" (lines as in "pending"), of the very version that was judged. An answer of 409
# or 404: another master was faster. What the API says that it has approved is compared with what was judged.
approve() {
  jq -Rr --arg url "$APPROVER_API$REQUESTS" --arg run "$APPROVER_RUN" '
    split("\t") as [$user, $time, $name, $uid, $version]
    | {metadata: {uid: $uid, resourceVersion: $version},
    status: {conditions: [{type: "Approved", status: "True", reason: "NodeOfTheStack",
    message: "as the config of the stack has this node"}]}}
    | [(if input_line_number > 1 then "next" else empty end),
    "url = \($url + "/" + ($name | @uri) + "/approval" | tojson)", "data = \(tojson | tojson)", "request = PATCH",
    "header = \"Content-Type: application/merge-patch+json\"",
       "noproxy = \"*\"", "globoff", "cacert = \($run + "/ca.crt" | tojson)",
       "cert = \($run + "/approver.crt" | tojson)", "key = \($run + "/key" | tojson)", "silent", "max-time = 30",
       "output = \($run + "/answer." + $uid | tojson)", "write-out = \"\($uid) %{http_code}\\n\""] | join("\n")' \
    "$APPROVER_RUN/approved" >"$APPROVER_RUN/patches"
  rm -f "$APPROVER_RUN"/answer.*
  timeout 120 curl -K "$APPROVER_RUN/patches" >"$APPROVER_RUN/answers" 2>/dev/null
  tell_approved || return 1
  ! grep -qv -e ' 200$' -e ' 409$' -e ' 404$' "$APPROVER_RUN/answers"
}
tell_approved() {
  local user _ name uid signer request names="" count=0 is
  while IFS=$'\t' read -r user _ name uid _ signer _ _ request; do
    if ! grep -qx "$uid 200" "$APPROVER_RUN/answers"; then continue; fi
    is=$(jq -r '[.metadata.name, .metadata.uid, .spec.username, .spec.signerName, .spec.request] | @tsv' \
      "$APPROVER_RUN/answer.$uid")
    if [[ $is != "$name"$'\t'"$uid"$'\t'"$user"$'\t'"$signer"$'\t'"$request" ]]; then
      echo "what was approved is not what was judged: $name" >"$APPROVER_RUN/error"
      note "what was approved is not what was judged, of $user: $name ($(cut -c 1-200 <<<"$is" | tr -cd '[:print:]'))"
      return 1
    fi
    names+=" $name" count=$((count + 1))
  done <"$APPROVER_RUN/approved"
  if ((count)); then note "approved $count:${names:0:600}"; fi
}

asked_of() { grep -qF $'\t'"$1"$'\t' "$APPROVER_RUN/pending"; } # asked_of SIGNER

# approve_pending: sets left (requests that stay pending) and more (1: there may be others to approve); fails when the
# API did not do what was asked.
approve_pending() {
  local user time name uid is signer group usages request why count=0
  left="" more=0
  pending || return 1
  if [[ ! -s $APPROVER_RUN/pending ]]; then return 0; fi
  if asked_of "$SERVING_SIGNER"; then addresses || return 1; fi
  if asked_of "$JOINING_SIGNER"; then joining || return 1; fi
  : >"$APPROVER_RUN/approved"
  while IFS=$'\t' read -r user time name uid is signer group usages request; do
    if ((count >= AT_ONCE)); then
      more=1
      break
    fi
    why=$(judge "$signer" "$user" "$group" "$usages" "$request")
    if [[ -z $why ]]; then
      printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$user" "$time" "$name" "$uid" "$is" "$signer" "$group" "$usages" \
        "$request" >>"$APPROVER_RUN/approved"
      count=$((count + 1))
    else
      left+="$name "
      note_once "not approved, of $user: $why"
    fi
  done <"$APPROVER_RUN/pending"
  if ((count)); then approve || return 1; fi
}

# await_request SECONDS: until a request comes or changes, or the time is over
await_request() {
  local events pid
  exec {events}< <(ask exec -N --max-time "$(($1 + 10))" \
    "$APPROVER_API$REQUESTS?watch=1&resourceVersion=$version&timeoutSeconds=$1" 2>/dev/null)
  pid=$!
  read -r -t "$(($1 + 5))" -N 1 -u "$events" _
  kill "$pid" 2>/dev/null
  wait "$pid" 2>/dev/null
  exec {events}<&-
}

approve_for_ever() {
  local left="" before="" more=0 pause=5 failures=0
  note "approving certificates of kubelets"
  while true; do
    if ! approve_pending || ! note_credentials; then
      failures=$((failures + 1))
      # The API is unavailable for a moment whenever this master changes, and who may approve is told it once the first
      # master serves.
      if ((failures == 4)); then
        note "the API does not do what is asked: $(tail -n 1 "$APPROVER_RUN/error" | tr -cd '[:print:]' |
          cut -c 1-200) $(sort -u -k 2,2 "$APPROVER_RUN/answers" 2>/dev/null | head -n 3 | xargs)"
      fi
      sleep "$((failures < 3 ? failures : 3))"
      continue
    fi
    if ((failures >= 4)); then note "the API answers again"; fi
    failures=0
    # What is not approved now may be once the addresses are others: it is looked at again, less and less often.
    if [[ -z $left ]]; then
      pause=300
    elif [[ $left != "$before" ]]; then
      pause=5
    else
      pause=$((pause < 60 ? 2 * pause : 60))
    fi
    before=$left
    if ((! more)); then await_request "$pause"; fi
    sleep 0.3 # one look for all that come together
  done
}

if [[ ${BASH_SOURCE[0]} == "$0" ]]; then
  set -uo pipefail
  export LC_ALL=C PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
  umask 077
  take_keys || exit 1
  approve_for_ever </dev/null
fi
