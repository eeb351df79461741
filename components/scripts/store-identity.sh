# shellcheck shell=bash
# Who a request to the object store is from: a key of the config, or this machine, as the cloud's metadata service knows
# it. That service answers the machine and no pod (cloud_init.sh). Only definitions; snapshot.sh sources it.
# Variables: BACKUP_IDENTITY (ec2: the instance profile, by IMDSv2; gce: the service account; unset: the key), and those
#   of object-store.sh. What it learns is in variables of this run alone: in no file, and on no command line.
METADATA=${METADATA:-http://169.254.169.254}
METADATA_S=${METADATA_S:-20} # it answers in milliseconds
FRESH_S=300                  # both clouds have new ones that long before old ones end
ROLES_AT=latest/meta-data/iam/security-credentials/
ACCOUNT_AT=computeMetadata/v1/instance/service-accounts/default/token
# shellcheck disable=SC2034 # object-store.sh sends it
LOGIN=""    # lines of a config of curl's, which it reads on stdin
LOGIN_END=0 # seconds since 1970
TROUBLE=""  # why there is no LOGIN

# log_in: LOGIN is good for the next request; where it fails TROUBLE says why.
log_in() {
  local secret
  if ((LOGIN_END > $(date +%s) + FRESH_S)); then return; fi
  case ${BACKUP_IDENTITY:-} in
    ec2) as_profile ;;
    gce) as_account ;;
    *)
      if [[ ! -s $PKI/store.key ]]; then
        TROUBLE="there is no $PKI/store.key (pulumi up places it)"
        return 1
      fi
      secret=$(<"$PKI/store.key") secret=${secret//\\/\\\\}
      LOGIN="user = \"$BACKUP_ACCESS_KEY:${secret//\"/\\\"}\""
      ;;
  esac
}

signs() { [[ ${BACKUP_IDENTITY:-} != gce ]]; } # a token is shown as it is

# metadata HEADER PATH [WORD...]: the answer, in ANSWER. Its headers hold tokens too, so they go by stdin.
metadata() {
  local header=$1 path=$2 said code error=$SENDING-error
  shift 2
  ANSWER=""
  # -f: of an attempt that is refused nothing is in the way of the next one's answer
  said=$(printf 'header = "%s"\n' "$header" |
    curl -q -f -sS -K - --noproxy '*' --proto '=http' --connect-timeout 3 --max-time 5 --retry 3 --retry-delay 2 \
      --retry-max-time "$METADATA_S" --retry-connrefused -w '\n%{http_code}' "$@" "$METADATA/$path" 2>"$error") || {
    code=${said##*$'\n'}
    if [[ $code != [1-5][0-9][0-9] ]]; then
      code=$(grep -a '^curl: (' "$error" | tail -n 1 | tr -cd '[:print:]' | cut -c1-200) || code=none
    fi
    TROUBLE="the metadata service at $METADATA gave no $path within $METADATA_S s; last answer: $code"
    return 1
  }
  ANSWER=${said%$'\n'*}
}

# json NAME: its value in ANSWER, a text without escapes or a number. There need be no jq on a machine of etcd alone.
json() { (grep -ao "\"$1\" *: *\"\?[^\",}]*" <<<"$ANSWER" || true) | sed -n '1s/^[^:]*: *"\?//p' | tr -cd '[:graph:]'; }

as_profile() {
  local token role id secret session until
  metadata "X-aws-ec2-metadata-token-ttl-seconds: 60" latest/api/token -X PUT || return 1
  token=$(tr -cd '[:graph:]' <<<"$ANSWER")
  if ! metadata "X-aws-ec2-metadata-token: $token" "$ROLES_AT"; then
    if [[ $TROUBLE == *": 404" ]]; then TROUBLE+=", it has no instance profile"; fi
    return 1
  fi
  role=$(head -n 1 <<<"$ANSWER")
  if [[ ! $role =~ ^[A-Za-z0-9_+=,.@-]{1,128}$ ]]; then
    TROUBLE="the metadata service at $METADATA names no role of this machine"
    return 1
  fi
  metadata "X-aws-ec2-metadata-token: $token" "$ROLES_AT$role" || return 1
  id=$(json AccessKeyId) secret=$(json SecretAccessKey) session=$(json Token) until=$(json Expiration)
  if [[ ! $id =~ ^[A-Z0-9]{16,128}$ || ! $secret =~ ^[A-Za-z0-9/+=]+$ || ! $session =~ ^[A-Za-z0-9/+=_-]+$ ]]; then
    TROUBLE="the metadata service at $METADATA has no credentials of role $role: $(json Code)"
    return 1
  fi
  LOGIN_END=$(date -u -d "$until" +%s 2>/dev/null) || LOGIN_END=0
  not_over "the credentials of role $role" || return 1
  LOGIN="user = \"$id:$secret\"
header = \"x-amz-security-token: $session\""
}

as_account() {
  local token
  if ! metadata "Metadata-Flavor: Google" "$ACCOUNT_AT"; then
    if [[ $TROUBLE == *": 404" ]]; then TROUBLE+=", it has no service account"; fi
    return 1
  fi
  token=$(json access_token)
  if [[ ! $token =~ ^[A-Za-z0-9._~+/=-]+$ ]]; then
    TROUBLE="the metadata service at $METADATA has no token of this machine's service account"
    return 1
  fi
  LOGIN_END=$(json expires_in)
  if [[ ! $LOGIN_END =~ ^[0-9]{1,9}$ ]]; then LOGIN_END=0; fi
  LOGIN_END=$(($(date +%s) + LOGIN_END))
  not_over "the token of this machine's service account" || return 1
  # shellcheck disable=SC2034 # as above
  LOGIN="header = \"Authorization: Bearer $token\""
}

not_over() { # not_over WHAT
  if ((LOGIN_END > $(date +%s))); then return; fi
  TROUBLE="the metadata service at $METADATA gives $1, ended at $(date -u -d "@$LOGIN_END" +%FT%TZ), by this clock"
  return 1
}

# What to do where the store lets this one in no further.
let_in() {
  case ${BACKUP_IDENTITY:-} in
    ec2)
      echo "see that the role of $NODE may write there, which pulumi up sees to; that no policy of the bucket, of its" \
        "key or of the organisation denies it; and that endpoint and region are those of the bucket"
      ;;
    gce)
      echo "see that the service account of $NODE may write there, which pulumi up sees to, and that the bucket has" \
        "uniform access"
      ;;
    *)
      echo "see etcd.backup.objectStore.accessKey and kube-ha:backupSecretKey, and that this key may write there"
      ;;
  esac
}
