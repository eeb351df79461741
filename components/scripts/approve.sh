#!/usr/bin/env bash
# Approves what kubelets ask for to serve with, and nothing else: a certificate for the node's own name, and for the address that the stack's config
# gives that node (ConfigMap kube-system/kube-ha-addresses, which no kubelet may write). What it does not approve stays pending; why is in the journal,
# once for each reason. Runs on every master as kube-ha-approver.service; several side by side do no harm, and each begins anew at any time.
# The credential is admin.conf's, for no other on a master may approve; every request is made as the user kube-ha:approver, who may do this alone.
# Installed by phase master, which sources it too: only definitions, unless it is run.
APPROVER_API=https://127.0.0.1:3446
APPROVER_CREDENTIAL=/etc/kubernetes/admin.conf
APPROVER_CA=/etc/kubernetes/pki/ca.crt
APPROVER_RUN=/run/kube-ha-approver
REQUESTS=/apis/certificates.k8s.io/v1/certificatesigningrequests
OF_KUBELETS=fieldSelector=spec.signerName%3Dkubernetes.io%2Fkubelet-serving
PAGE=500    # requests read at a time
PAGES=40    # a node that asks for more than these is not worth more
NEWEST=3    # requests judged of one user: its kubelet waits for the last one
AT_ONCE=100 # requests approved before the list is read again: other masters approve others meanwhile

note() { printf '%s\n' "$*"; }

# Every reason once, however often it is met. Hostile nodes may make up many: then it begins anew.
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

# The files that curl reads: of the credential as it is now, for it is renewed, and its CA replaced.
take_credential() {
  local key
  for key in certificate key; do
    (umask 077 && awk -v key="client-$key-data:" '$1 == key {print $2; exit}' "$APPROVER_CREDENTIAL" 2>/dev/null | base64 -d >"$APPROVER_RUN/$key.new") && [[ -s $APPROVER_RUN/$key.new ]] || return 1
    mv -f "$APPROVER_RUN/$key.new" "$APPROVER_RUN/$key"
  done
}
ask() { # ask exec|call CURL-WORD...
  local as=(curl -sS --noproxy '*' --cacert "$APPROVER_CA" --cert "$APPROVER_RUN/certificate" --key "$APPROVER_RUN/key" -H 'Impersonate-User: kube-ha:approver' "${@:2}")
  if [[ $1 == exec ]]; then exec "${as[@]}"; else "${as[@]}"; fi
}

# pending: requests that wait for a word, the newest of each user, into the file of that name: user, time, name, uid, version, node group, usages, PEM in base64.
pending() {
  local next="" page
  : >"$APPROVER_RUN/all"
  for ((page = 0; page < PAGES; page++)); do
    ask call -f --max-time 60 -o "$APPROVER_RUN/page" "$APPROVER_API$REQUESTS?$OF_KUBELETS&limit=$PAGE${next:+&continue=$next}" 2>"$APPROVER_RUN/error" || return 1
    jq -r '.items[] | select((.status.certificate // "") == "" and ([.status.conditions[]? | select(.type == "Approved" or .type == "Denied" or .type == "Failed")] == []))
      | [.spec.username, .metadata.creationTimestamp, .metadata.name, .metadata.uid, .metadata.resourceVersion, ((.spec.groups // []) | any(. == "system:nodes")),
         ((.spec.usages // []) | sort | join(",")), .spec.request] | @tsv' "$APPROVER_RUN/page" >>"$APPROVER_RUN/all" 2>"$APPROVER_RUN/error" || return 1
    version=$(jq -r '.metadata.resourceVersion // ""' "$APPROVER_RUN/page")
    next=$(jq -r '.metadata.continue // "" | @uri' "$APPROVER_RUN/page")
    if [[ -z $next ]]; then break; fi
  done
  sort -t $'\t' -k 1,1 -k 2,2r "$APPROVER_RUN/all" | awk -F '\t' -v most="$NEWEST" '++seen[$1] <= most' | shuf >"$APPROVER_RUN/pending"
}

# addresses: by name, what the config says, as 8 hexadecimal digits. Lines of the table: "a-[1-3],a-[7-9/2] 10.0.0.10+" (the number at the end of the name
# is added), "a-[1-3] 10.0:000b000c000d" (4 digits for each name, in their order) or "name 10.0.0.7".
declare -A address_of=()
domain="" # of the names that AWS's cloud controller manager gives nodes: ip-10-0-0-7.DOMAIN
addresses() {
  local name address
  ask call -f --max-time 20 -o "$APPROVER_RUN/table" "$APPROVER_API/api/v1/namespaces/kube-system/configmaps/kube-ha-addresses" 2>"$APPROVER_RUN/error" || return 1
  domain=$(jq -r '.data.domain // ""' "$APPROVER_RUN/table")
  address_of=()
  while read -r name address; do
    address_of["$name"]=$address
  done < <(jq -r '.data.addresses // ""' "$APPROVER_RUN/table" | expand_addresses)
}
expand_addresses() {
  awk '
    function hex(address, part) {
      split(address, part, ".")
      return sprintf("%02x%02x%02x%02x", part[1], part[2], part[3], part[4])
    }
    function plus(address, number, part, sum) {
      split(address, part, ".")
      sum = ((part[1] * 256 + part[2]) * 256 + part[3]) * 256 + part[4] + number
      return int(sum / 16777216) "." int(sum / 65536) % 256 "." int(sum / 256) % 256 "." sum % 256
    }
    function told(name, number) {
      if (rest != "") print name, start substr(rest, 4 * place++ + 1, 4)
      else print name, hex(plus(base, number))
    }
    NF == 2 && $2 !~ /[+:]/ {print $1, hex($2); next}
    NF == 2 {
      rest = ""; base = substr($2, 1, length($2) - 1)
      if (split($2, halves, ":") == 2) {
        rest = halves[2]; start = substr(hex(halves[1] ".0.0"), 1, 4); place = 0
      }
      count = split($1, parts, ",")
      for (i = 1; i <= count; i++) {
        if (match(parts[i], /\[[0-9]+-[0-9]+(\/[0-9]+)?\]$/)) {
          split(substr(parts[i], RSTART + 1, RLENGTH - 2), range, /[-\/]/)
          step = (range[3] > 0) ? range[3] : 1
          for (n = range[1] + 0; n <= range[2] + 0; n += step) told(substr(parts[i], 1, RSTART - 1) n, n)
        } else if (match(parts[i], /[0-9]+$/)) {
          told(parts[i], substr(parts[i], RSTART) + 0)
        }
      }
    }'
}

# What stands in a request, as bytes in hexadecimal digits (DER, X.690). Both set made: to the bytes of a text, or to a value with what it was as content.
hex() {
  local i digits=""
  made=""
  for ((i = 0; i < ${#1}; i++)); do
    printf -v digits '%02x' "'${1:i:1}"
    made+=$digits
  done
}
wrap() { # wrap TAG...: from the inside out
  local tag size
  for tag in "$@"; do
    size=$((${#made} / 2))
    if ((size < 128)); then printf -v size '%02x' "$size"; elif ((size < 256)); then printf -v size '81%02x' "$size"; else printf -v size '82%04x' "$size"; fi
    made=$tag$size$made
  done
}
attribute() { # attribute OID TEXT: one part of a subject, a PrintableString
  hex "$2"
  wrap 13
  made=0603$1$made
  wrap 30 31
}

# read_der DIGITS: sets tag, content and rest of the first value in it; fails where it is cut off.
read_der() {
  local size head=4
  tag=${1:0:2}
  [[ ${1:2:2} =~ ^[0-9a-f]{2}$ ]] || return 1
  size=$((16#${1:2:2}))
  if ((size == 0x81 || size == 0x82)); then
    head=$((4 + 2 * (size - 0x80)))
    [[ ${1:4:head-4} =~ ^[0-9a-f]+$ ]] || return 1
    size=$((16#${1:4:head-4}))
  elif ((size >= 0x80)); then
    return 1
  fi
  content=${1:head:2*size} rest=${1:head+2*size}
  ((${#content} == 2 * size))
}

# is_wanted DIGITS NAME ADDRESS DNS-NAME: the request is, byte for byte but for key and signature, what that node's kubelet asks for: this subject, this
# one DNS name and this one address, in this order, and nothing else. Nothing has to be understood of what anybody else may have put into it.
is_wanted() {
  local tag content rest made subject names body
  attribute 55040a system:nodes
  subject=$made
  attribute 550403 "system:node:$2"
  made=$subject$made
  wrap 30
  subject=$made
  hex "$4"
  wrap 82
  names=$made made=$3
  wrap 87
  made=$names$made
  wrap 30 04
  made=0603551d11$made # subjectAltName
  wrap 30 30 31
  made=06092a864886f70d01090e$made # extensionRequest
  wrap 30 a0
  names=$made
  read_der "$1" || return 1
  [[ $tag == 30 && -z $rest ]] || return 1
  read_der "$content" || return 1
  [[ $tag == 30 && $content == "020100$subject"*"$names" ]] || return 1
  body=${content#"020100$subject"}
  read_der "${body%"$names"}" || return 1 # the public key, and nothing but it
  [[ $tag == 30 && -z $rest ]]
}

# der_of BASE64-OF-PEM: exactly one request and nothing around it, for others may read another block of a text than the API does.
der_of() {
  local pem
  pem=$(base64 -d <<<"$1" 2>/dev/null | tr -d '\000\r' && echo .) || return 1
  pem=${pem%.}
  [[ $pem =~ ^-----BEGIN\ CERTIFICATE\ REQUEST-----$'\n'([A-Za-z0-9+/=$'\n']+)$'\n'-----END\ CERTIFICATE\ REQUEST-----$'\n'*$ ]] || return 1
  base64 -d <<<"${BASH_REMATCH[1]}" 2>/dev/null | od -An -v -tx1 | tr -d ' \n'
}

# judge USER GROUP USAGES REQUEST: why not; empty: it may be approved
judge() {
  local node=${1#system:node:} digits
  if [[ ! $1 =~ ^system:node:[a-z0-9.-]+$ || $2 != true ]]; then
    echo "asked for by somebody who is no node"
  elif [[ ! ,$3, =~ ^,digital\ signature,(key\ encipherment,)?server\ auth,$ ]]; then
    echo "for another use than serving: $3"
  elif [[ -z ${address_of[$node]:-} ]]; then
    echo "the stack's config has no such node in the cluster (ConfigMap kube-system/kube-ha-addresses)"
  elif ! digits=$(der_of "$4"); then
    echo "not readable as a request"
  elif ! is_wanted "$digits" "$node" "${address_of[$node]}" "$node" && { [[ -z $domain ]] || ! is_wanted "$digits" "$node" "${address_of[$node]}" "$(cloud_name "${address_of[$node]}")"; }; then
    printf 'asks for other names than %s and %d.%d.%d.%d: %s\n' "$node" "0x${address_of[$node]:0:2}" "0x${address_of[$node]:2:2}" "0x${address_of[$node]:4:2}" "0x${address_of[$node]:6:2}" "$(asked_for "$4")"
  fi
}
cloud_name() { printf 'ip-%d-%d-%d-%d.%s' "0x${1:0:2}" "0x${1:2:2}" "0x${1:4:2}" "0x${1:6:2}" "$domain"; }
# For people alone.
asked_for() {
  local text
  text=$(base64 -d <<<"$1" 2>/dev/null | timeout 5 openssl req -noout -text 2>/dev/null | tr -cd '[:print:]\n' | awk '/Subject:|DNS:|IP Address:|URI:|email:/ {$1 = $1; printf "%s%s", sep, $0; sep = "; "}' | cut -c 1-200)
  printf '%s' "${text:-no names}"
}

# approve: those of the file "approved" (name, uid, version), of the very version that was judged. An answer of 409 or 404: another master was faster.
approve() {
  local name uid version body
  (umask 077 && : >"$APPROVER_RUN/patches")
  while read -r name uid version; do
    body="{\"metadata\":{\"uid\":\"$uid\",\"resourceVersion\":\"$version\"},\"status\":{\"conditions\":[{\"type\":\"Approved\",\"status\":\"True\",\"reason\":\"NodeOfTheStack\",\"message\":\"name and address are those of the stack's config\"}]}}"
    printf 'url = "%s%s/%s/approval"\ndata = "%s"\nrequest = PATCH\nheader = "Content-Type: application/merge-patch+json"\nheader = "Impersonate-User: kube-ha:approver"\nnoproxy = "*"\ncacert = "%s"\ncert = "%s"\nkey = "%s"\nsilent\nmax-time = 30\noutput = /dev/null\nwrite-out = "%s %%{http_code}\\n"\nnext\n' \
      "$APPROVER_API" "$REQUESTS" "$name" "${body//\"/\\\"}" "$APPROVER_CA" "$APPROVER_RUN/certificate" "$APPROVER_RUN/key" "$name" >>"$APPROVER_RUN/patches"
  done <"$APPROVER_RUN/approved"
  sed -i '$d' "$APPROVER_RUN/patches" # nothing follows the last one
  timeout 120 curl -K "$APPROVER_RUN/patches" >"$APPROVER_RUN/answers" 2>/dev/null
  awk '$2 == 200 {names = names " " $1; count++} END {if (count) print "approved " count ":" substr(names, 1, 600)}' "$APPROVER_RUN/answers"
  ! grep -qv -e ' 200$' -e ' 409$' -e ' 404$' "$APPROVER_RUN/answers"
}

# round: sets left (requests that stay pending) and more (1: there may be others to approve); fails when the API did not do what was asked.
round() {
  local user _ name uid is group usages request why count=0
  left="" more=0
  pending || return 1
  if [[ ! -s $APPROVER_RUN/pending ]]; then return 0; fi
  addresses || return 1
  : >"$APPROVER_RUN/approved"
  while IFS=$'\t' read -r user _ name uid is group usages request; do
    if ((count >= AT_ONCE)); then
      more=1
      break
    fi
    why=$(judge "$user" "$group" "$usages" "$request")
    if [[ -z $why ]]; then
      printf '%s %s %s\n' "$name" "$uid" "$is" >>"$APPROVER_RUN/approved"
      count=$((count + 1))
    else
      left+="$name "
      note_once "not approved, of $user: $why"
    fi
  done <"$APPROVER_RUN/pending"
  if ((count)); then approve || return 1; fi
}

# linger SECONDS: until a request comes or changes, or the time is over
linger() {
  local events pid
  exec {events}< <(ask exec -N --max-time "$(($1 + 10))" "$APPROVER_API$REQUESTS?$OF_KUBELETS&watch=1&resourceVersion=$version&timeoutSeconds=$1" 2>/dev/null)
  pid=$!
  read -r -t "$(($1 + 5))" -N 1 -u "$events" _
  kill "$pid" 2>/dev/null
  wait "$pid" 2>/dev/null
  exec {events}<&-
}

approve_for_ever() {
  local left="" before="" more=0 pause=5 failures=0
  note "approving serving certificates of kubelets"
  while true; do
    if ! take_credential; then
      note_once "$APPROVER_CREDENTIAL holds no credential: pulumi up makes it anew"
      sleep 15
      continue
    fi
    if ! round; then
      failures=$((failures + 1))
      # The API is away for a moment whenever this master changes.
      if ((failures == 4)); then note "the API does not do what is asked: $(tail -n 1 "$APPROVER_RUN/error" | tr -cd '[:print:]' | cut -c 1-200) $(sort -u -k 2,2 "$APPROVER_RUN/answers" 2>/dev/null | head -n 3 | xargs)"; fi
      sleep "$((failures < 10 ? failures : 15))"
      continue
    fi
    if ((failures >= 4)); then note "the API answers again"; fi
    failures=0
    # What is not approved now may be once the addresses are others: it is looked at again, less and less often.
    if [[ -z $left ]]; then pause=300; elif [[ $left != "$before" ]]; then pause=5; else pause=$((pause < 60 ? 2 * pause : 60)); fi
    before=$left
    if ((! more)); then linger "$pause"; fi
    sleep 0.3 # one look for all that come together
  done
}

if [[ ${BASH_SOURCE[0]} == "$0" ]]; then
  set -uo pipefail
  export LC_ALL=C PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
  umask 077
  mkdir -p "$APPROVER_RUN"
  approve_for_ever
fi
