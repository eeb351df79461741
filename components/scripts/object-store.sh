# shellcheck shell=bash
# Sends snapshots to an object store with the API of S3, and deletes old ones there, by curl alone, which signs each
# request (AWS Signature Version 4). Only definitions; snapshot.sh sources it. The store gets the SHA-256 of what is
# sent, signed with the request, and takes nothing else. Google's, which knows machines by a token, goes by the MD5.
# Variables: BACKUP_STORE (http(s)://host[:port]/bucket[/prefix]; empty: there is none), BACKUP_REGION,
#   BACKUP_ACCESS_KEY, BACKUP_CA (1: its own, $PKI/store-ca.crt), BACKUP_PRUNE (1: old ones are deleted there),
#   BACKUP_PROXY (URL; empty: none), and those of snapshot.sh and store-identity.sh. Reads the key's secret in
#   $PKI/store.key. Changes: objects below <prefix>/<cluster>-<its id>/, the marks backup.sent and backup.unsent.
STORE_FOLDER=${CLUSTER}-$CLUSTER_ID
NOTHING_SUM=e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
PAGES=100              # of 1000 names each
MOST_KIB=16384         # of an answer; what else is on this disk is etcd
STILL_S=${STILL_S:-60} # a store that stands still for so long has failed

# Names of this run alone: an upload may take long, and the next backup does not wait for it.
SENDING=$BACKUPS/.sending-$$

# asked PATH SUM [WORD...]: one request, curl's other WORDs with it; what the store answers is in $SENDING-answer.
# Where it refuses, or cannot be reached, the reason is on stdout.
asked() {
  local path=$1 sum=$2 origin code status said=$SENDING-answer error=$SENDING-error trust=() signed=()
  shift 2
  origin=$(cut -d/ -f1-3 <<<"$BACKUP_STORE")
  if ! log_in; then
    printf '%s\n' "$TROUBLE"
    return 1
  fi
  if [[ ${BACKUP_CA:-0} == 1 ]]; then trust=(--cacert "$PKI/store-ca.crt"); fi
  if signs; then signed=(--aws-sigv4 "aws:amz:$BACKUP_REGION:s3" -H "x-amz-content-sha256: $sum"); fi
  rm -f "$said"
  # Secrets on stdin: a command line can be read by everybody. -q: no settings of root's own. Nothing is followed
  # elsewhere.
  code=$(printf '%s\n' "$LOGIN" |
    (ulimit -f "$MOST_KIB" &&
      exec curl -q -sS -K - --proto '=http,https' --proxy "${BACKUP_PROXY:-}" "${trust[@]}" "${signed[@]}" \
        --connect-timeout 10 --speed-limit 1 --speed-time "$STILL_S" --max-time 1200 \
        --retry 2 --retry-delay 3 --retry-max-time 300 \
        --retry-all-errors -o "$said" -w '%{http_code}' "$@" "$origin$path" 2>"$error")) || {
    status=$?
    (grep '^curl: (' "$error" || echo "curl ended with $status") | tail -n 1 | tr -cd '[:print:]' | cut -c1-300
    return 1
  }
  if [[ $code == 2* ]]; then return; fi
  printf '%s %s: %s\n' "$code" "$(element Code "$said")" "$(element Message "$said" | cut -c1-300)"
  return 1
}

# element NAME FILE: the first one of that name; what comes from the network has no control characters in a log.
element() { (grep -ao "<$1>[^<]*" "$2" 2>/dev/null || true) | sed -n "1s/^<$1>//p" | tr -cd '[:print:]'; }

# The path of the bucket, and the name of an object in it.
bucket_path() { printf '/%s\n' "$(cut -d/ -f4 <<<"$BACKUP_STORE")"; }
object_name() { # object_name [NAME]: without one, that of the folder, with its slash
  local prefix
  prefix=$(cut -d/ -f5- <<<"$BACKUP_STORE")
  printf '%s%s/%s\n' "${prefix:+$prefix/}" "$STORE_FOLDER" "${1:-}"
}

send_object() { # send_object FILE NAME SUM
  local md5
  # Besides the signed sum: buckets that lock objects want it.
  md5=$(openssl dgst -md5 -binary "$1" | base64)
  asked "$(bucket_path)/$(object_name "$2")" "$3" -T "$1" -H "Content-MD5: $md5" \
    -H "Content-Type: application/octet-stream"
}

# What is on this machine stays, whatever the store says.
not_sent() { # not_sent NAME REASON
  local todo="see that $NODE reaches it, and that it has room"
  case $2 in
    *RequestTimeTooSkewed* | *ExpiredToken* | *", by this clock") todo="set the clock of $NODE ($(date -u +%FT%TZ))" ;;
    "the metadata service "*)
      todo="see that $NODE has what the stack gave it (pulumi refresh, pulumi up), that its metadata service is on, and"
      todo+=" that no rule there drops it: make ssh NODE=$NODE, curl -i $METADATA/"
      ;;
    *NoSuchBucket*) todo="make that bucket, or name another one" ;;
    *InvalidAccessKeyId* | *SignatureDoesNotMatch* | *AccessDenied* | *"access key"* | *"403 "* | *"401 "*)
      todo=$(let_in)
      ;;
    *AuthorizationHeaderMalformed* | *"301 "* | *"307 "*)
      todo="see etcd.backup.objectStore: endpoint and region have to be those of the bucket"
      ;;
    *certificate*) todo="see etcd.backup.objectStore.ca" ;;
  esac
  # On a full disk the mark is missing, the error below counts, and backup.begun stays.
  if (printf '%s\t%s\t%s\n' "$(date +%s)" "$1" "$2" | put 600 "$STATE/backup.unsent") >/dev/null 2>&1; then
    rm -f "$STATE/backup.begun"
  fi
  die "the snapshot is at $BACKUPS/$1, but not at $BACKUP_STORE: $2" \
    "$todo; settings of the store are changed by an update of their own, then: make backup"
}

# send_off NAME: the checksum first, so that a snapshot that has its name has all that belongs to it. Whoever wants a
# snapshot meanwhile does not wait for the store: the lock is given up, and what is sent is held by names that no other
# run prunes.
send_off() {
  local name=$1 sum reason version
  # a survivor's is brought to whoever asked for it
  if [[ -z ${BACKUP_STORE:-} || $REASON == survivor ]]; then return; fi
  ln -f "$BACKUPS/$name" "$SENDING-snapshot"
  ln -f "$BACKUPS/$name.sha256" "$SENDING-sum"
  trap 'rm -f "$SENDING"-*' EXIT
  exec 7>&-
  version=$(curl -q --version | awk 'NR == 1 {print $2}')
  # Older ones sign without the sum, or without the port.
  if signs && [[ $(printf '%s\n' 7.88 "$version" | sort -V | head -n 1) != 7.88 ]]; then
    not_sent "$name" "curl $version here cannot sign it; 7.88 can"
  fi
  log_in || not_sent "$name" "$TROUBLE"
  sum=$(sha256sum <"$SENDING-sum")
  reason=$(send_object "$SENDING-sum" "$name.sha256" "${sum%% *}") || not_sent "$name" "$reason"
  reason=$(send_object "$SENDING-snapshot" "$name" "$(cut -d' ' -f1 "$SENDING-sum")") || not_sent "$name" "$reason"
  printf '%s\t%s\n' "$(date +%s)" "$name" | put 644 "$STATE/backup.sent" >/dev/null
  rm -f "$STATE/backup.unsent"
  log "sent to $BACKUP_STORE"
  if [[ $BACKUP_PRUNE == 1 ]]; then prune_store "$name"; fi
}

encoded() { # encoded TEXT: as a part of a query
  local out="" letter i
  for ((i = 0; i < ${#1}; i++)); do
    letter=${1:i:1}
    if [[ $letter != [A-Za-z0-9._~-] ]]; then printf -v letter '%%%02X' "'$letter"; fi
    out+=$letter
  done
  printf '%s\n' "$out"
}

# Names of all objects in the folder. Keys of the query are in the order that the signature wants.
stored() {
  local token="" page prefix query
  prefix=$(object_name)
  for ((page = 1; page <= PAGES; page++)); do
    query="list-type=2&prefix=$(encoded "$prefix")"
    if [[ -n $token ]]; then query="continuation-token=$(encoded "$token")&$query"; fi
    asked "$(bucket_path)?$query" "$NOTHING_SUM" || return 1
    (grep -ao '<Key>[^<]*' "$SENDING-answer" || true) | sed -n "s|^<Key>$prefix||p" # no object at all is an answer
    if [[ $(element IsTruncated "$SENDING-answer") != true ]]; then return; fi
    token=$(element NextContinuationToken "$SENDING-answer" | cut -c1-2048)
  done
  echo "more than $PAGES pages of names"
  return 1
}

# As prune, by the names that are there: all of this reason that is older than the oldest one that is kept goes,
# checksums without a snapshot too.
prune_store() { # prune_store NAME: which has just been sent, and stays
  local form names oldest name reason ours gone=0
  form=$(name_form)
  names=$(stored) || not_pruned "$(tail -n 1 <<<"$names")"
  oldest=$(grep -xE "$form" <<<"$names" | sort -r | sed -n "${BACKUP_KEEP}p") || oldest=""
  if [[ -z $oldest ]]; then return; fi
  mapfile -t ours < <(grep -xE "$form(\.sha256)?" <<<"$names" | sort)
  for name in "${ours[@]}"; do
    if [[ $name == "$1"* || ! $name < $oldest ]]; then continue; fi
    reason=$(asked "$(bucket_path)/$(object_name "$name")" "$NOTHING_SUM" -X DELETE) || not_pruned "$reason"
    gone=$((gone + 1))
  done
  if ((gone)); then log "deleted $gone old objects there"; fi
}
not_pruned() { # not_pruned REASON
  die "the snapshot is at $BACKUP_STORE, but old ones there cannot be deleted: $1" \
    "let $NODE list and delete there, or leave it to the bucket: etcd.backup.objectStore.prune: false"
}
