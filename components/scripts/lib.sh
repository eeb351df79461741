# shellcheck shell=bash
# What every phase shares; sourced by run.sh after the values. Only definitions and settings: tests source it too.
# Values of every phase: NODE, CLUSTER (name), CLUSTER_ID (never changes), CONTAINER (1: the machine is a container),
#   INCARNATION (which machine under this node's name, a number that only rises; 1 when it is not said).
set -euo pipefail
shopt -s inherit_errexit # or a failing $(...) goes unseen
set -E
exec 2>&1 8>&1 # one ordered stream; 8 is it where $(...) takes the others
umask 022
export LC_ALL=C DEBIAN_FRONTEND=noninteractive PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
ROOT="" # before the paths of what is taken away; tests put a folder there
HOME_DIR=/var/lib/kube-ha
STATE=$HOME_DIR/state
RUN=/run/kube-ha # root's alone: in /run/lock any user of the machine could hold a lock, or keep root from opening it
LOCK=$RUN/lock
HINT="run pulumi up again; if it fails the same way, look at: journalctl -b -p warning on $NODE"
IDENTITY=/var/lib/kubelet/pki/kubelet-client-current.pem # of the kubelet: there once this machine is a node
CLUSTER_CA=/etc/kube-ha/ca.crt
changes=0
under_way="" # the wanted state that this phase works on; set by begin

# What the machine or the way of login sets would also reach kubeadm, which copies it into the static pods.
unset http_proxy https_proxy ftp_proxy all_proxy no_proxy HTTP_PROXY HTTPS_PROXY FTP_PROXY ALL_PROXY NO_PROXY
# Downloads go by the proxy that the config names; curl reads http_proxy in small letters only.
while IFS='=' read -r name value; do
  if [[ -n $name ]]; then export "$name=$value" "${name,,}=$value"; fi
done <<<"${PROXY_ENV:-}"

log() {
  local text="$*"
  text=${text:0:4000}
  text=${text//[^[:print:]]/ }
  printf '%(%T)T %s: %s\n' -1 "$NODE" "${text//'##['/'# ['}"
}
# plain: text that others may have written, on stdin, as people may see it: printable ASCII, and nothing that a log of
# CI takes for a command.
plain() { tr '\t\r' '  ' | tr -cd '\n\040-\176' | sed -E 's/^( *)::/\1: :/; s/##\[/# [/g'; }
die() { # die WHAT [DO...]: the words of DO are joined
  local todo="${*:2}"
  trap - ERR
  printf 'ERROR %s: %s\n  do: %s\n' "$NODE" "$(plain <<<"${1:0:6000}")" "$(plain <<<"${todo:-$HINT}")" >&8
  (tell_failure "$1") >/dev/null 2>&1 || true # the API may be away; the error above is what counts
  exit $((BASH_SUBSHELL > 0 ? 97 : 1))
}
# 97: a die within $(...) has said what there is to say.
on_error() {
  if (($1 == 97)); then exit 97; fi
  die "failed (line $2): $3"
}
# BASH_COMMAND is not expanded, so no value of a variable can leak here.
trap 'on_error $? "$LINENO" "$BASH_COMMAND"' ERR

# put MODE PATH [OWNER:GROUP]: make PATH hold stdin; readers see the old file or the new one, after a power cut too.
put() {
  local mode=$1 path=$2 owner=${3:-} new
  mkdir -p "${path%/*}"
  # Same folder, for an atomic mv; dot name, for kubelet runs every other file among the static pods; always the same
  # name, so that what a killed run left is gone with the next.
  new=${path%/*}/.${path##*/}.new
  rm -f "$new"
  (umask 077 && cat >"$new")
  chmod "$mode" "$new"
  if [[ -n $owner ]]; then chown "$owner" "$new"; fi
  if cmp -s "$new" "$path" && [[ $(stat -c %a:%u:%g "$path") == "$(stat -c %a:%u:%g "$new")" ]]; then
    rm -f "$new"
    return
  fi
  # Or a file system may keep the name and lose what it stands for: an empty file where the state says that this is
  # done.
  sync -d "$new"
  mv -f "$new" "$path"
  sync "${path%/*}"
  changes=$((changes + 1))
  log "wrote $path"
}

# wait_for SECONDS WHAT COMMAND...: poll, never forever, keep the last answer. COMMAND is a program, or a function that
# bounds itself.
wait_for() {
  local limit=$1 what=$2 end=$((SECONDS + $1)) answer
  shift 2
  until answer=$(bounded "$@" 2>&1); do
    ((SECONDS < end)) || die "$what not seen in ${limit} s; last answer: $(tail -c 600 <<<"${answer:-none}")"
    sleep 0.5
  done
}
bounded() { if [[ $(type -t "$1") == function ]]; then "$@"; else timeout 15 "$@"; fi; }

# settle VERB UNIT FILE...: VERB (restart or reload) UNIT unless it last became active with these very FILEs.
# The mark is written last: a crash in between restarts once more, never too little.
settle() {
  local verb=$1 unit=$2 mark=$STATE/$2.sum want
  shift 2
  want=$(sha256sum -- "$@")
  if is_settled "$unit" "$want"; then
    if ! systemctl is-enabled -q "$unit"; then # switched off for the next boot, by hand
      systemctl enable -q "$unit"
      changes=$((changes + 1))
    fi
    return
  fi
  # From here on the old mark would lie: the process may have the new files when a killed run's change is taken back.
  rm -f "$mark"
  systemctl daemon-reload
  systemctl enable -q "$unit"
  if [[ $verb == reload ]] && systemctl is-active -q "$unit"; then
    systemctl reload "$unit"
  else
    systemctl restart "$unit"
  fi
  wait_for 60 "unit $unit active" systemctl is-active "$unit"
  changes=$((changes + 1))
  log "${verb}ed $unit"
  put 600 "$mark" <<<"$want"
}
is_settled() { [[ -f $STATE/$1.sum && $(<"$STATE/$1.sum") == "$2" ]] && systemctl is-active -q "$1"; }

minor_of() { # minor_of VERSION: v1.36.3 as 1036, for comparing
  [[ $1 =~ ^v?([0-9]+)\.([0-9]+) ]] || die "'$1' is not a version"
  printf '%d\n' $((BASH_REMATCH[1] * 1000 + BASH_REMATCH[2]))
}

# One run at a time: a second one may have been left behind by an engine that died. Such a one does nothing once it gets
# its turn: what it was asked for may be older than what has been done meanwhile.
lock() {
  mkdir -p "$STATE"
  chmod 700 "$STATE" # logs of kubeadm, kubectl and apt are nobody's but root's
  install -d -m 700 "${LOCK%/*}"
  exec 9>"$LOCK"
  flock -w 600 9 || die "another run holds $LOCK since 600 s" "let it end (fuser $LOCK), then run pulumi up again"
  if [[ -e $OLD_LOCK ]]; then
    wait_for 600 "end of a run of an older version, which holds $OLD_LOCK" old_run_ended
    rm -f "$OLD_LOCK"
  fi
  end_unheard
}

# What versions before locked. Anybody may hold that one: only root's word counts.
OLD_LOCK=/run/lock/kube-ha.lock
old_run_ended() {
  local inode pid
  inode=$(stat -c %i "$OLD_LOCK" 2>/dev/null) || return 0
  # One that waits for it has an arrow in its line.
  pid=$(awk -v end=":$inode" '$2 == "FLOCK" && substr($6, length($6) - length(end) + 1) == end {print $5; exit}' \
    /proc/locks)
  if [[ -z $pid || $(stat -c %u "/proc/$pid" 2>/dev/null) != 0 ]]; then return; fi
  echo "process $pid has it"
  return 1
}

# The process of the SSH session by which this was asked for; nothing where it was asked for on the machine itself.
session() {
  local pid=$$
  while ((pid > 1)); do
    if [[ $(cat "/proc/$pid/comm" 2>/dev/null) == sshd* ]]; then
      printf '%s\n' "$pid"
      return
    fi
    pid=$(awk '$1 == "PPid:" {print $2}' "/proc/$pid/status" 2>/dev/null) || return 0
  done
}
# For those who wait and change nothing meanwhile: nobody is left who waits with them, and the next run waits for this
# one.
end_unheard() {
  if [[ -n ${SESSION:-} && ! -d /proc/$SESSION ]]; then
    die "the connection that asked for this is gone" "run pulumi up again"
  fi
}

# The machine belongs to one incarnation of one node of one cluster until it is released.
# own [RENEW]: RENEW makes the machine of an older incarnation a clean one that is still ours; without it such a machine
# is an error
own() {
  local want="$CLUSTER $CLUSTER_ID $NODE" here
  lock
  # An empty mark is what a power cut has left of one.
  if [[ -s $STATE/owner ]]; then
    [[ $(<"$STATE/owner") == "$want" ]] ||
      die "this machine belongs to \"$(<"$STATE/owner")\", not to \"$want\" (cluster, id, node)" \
        "take it out of this stack's config, or release it there first; to wipe it by hand:" \
        "/usr/local/lib/kube-ha/leave"
    here=$(incarnation)
    ((here <= ${INCARNATION:-1})) ||
      die "this machine is incarnation $here of $NODE, the config wants ${INCARNATION:-1}" \
        "set nodes.$NODE.generation to $here, or to $((here + 1)) to recreate it"
    if ((here < ${INCARNATION:-1})); then "${1:-refuse_older}"; fi
  fi
  # The number before the name: cut off between them, this is a machine that belongs to nobody.
  if ((${INCARNATION:-1} > 1)); then
    put 600 "$STATE/incarnation" <<<"$INCARNATION"
  else
    rm -f "$STATE/incarnation"
  fi
  put 600 "$STATE/owner" <<<"$want"
  rm -f "$STATE/released"
}
incarnation() { # the one that this machine is, or was
  local here=1
  if [[ -f $STATE/incarnation ]]; then here=$(<"$STATE/incarnation"); fi
  [[ $here =~ ^[1-9][0-9]*$ ]] ||
    die "$STATE/incarnation holds no number" "write into it nodes.$NODE.generation of the day when this machine joined"
  printf '%s\n' "$here"
}
refuse_older() {
  die "this machine is still incarnation $(incarnation) of $NODE, the config wants $INCARNATION" \
    "run pulumi up again: the phase node wipes it first"
}
finish() { log "done, changes=$changes"; }

RESUME=kube-ha-resume.service # continues with phase node after a reboot (os.sh)
# The machine itself continues first with what it was doing when it rebooted. To be called before the lock is taken.
await_resumed() {
  wait_for 600 "end of the update that this machine continues with after its reboot (journalctl -u $RESUME)" resumed
}
resumed() { [[ ! -e $ROOT/etc/systemd/system/$RESUME ]]; }

# forget_keys PREFIX: keys below it are gone for good, and nobody has taken them away by hand (pki.sh keeps the sums).
forget_keys() {
  local mark=$STATE/pki.sums rest
  if [[ ! -f $mark ]]; then return; fi
  rest=$(awk -v prefix="$1" 'index($2, prefix) != 1' "$mark")
  put 600 "$mark" <<<"$rest"
}

# A kubelet writes its kubeconfig before it has a certificate, and a power cut leaves half of a file: a machine has
# joined when it has all of it.
joined() {
  grep -qs 'client-key' "$ROOT/etc/kubernetes/kubelet.conf" && grep -qs 'END CERTIFICATE' "$IDENTITY" &&
    grep -qs 'END .*PRIVATE KEY' "$IDENTITY"
}

kubectl_admin() { kubectl --kubeconfig /etc/kubernetes/admin.conf --request-timeout 10s "$@"; }
# A kubelet may annotate its own Node: nodes.sh reads there that this node has begun, has applied what is wanted, or why
# it could not.
begin() { # begin WANTED: from here on this phase works on it; what an earlier run failed with no longer counts
  under_way=$1
  # no node yet, or the API is unavailable
  annotate_self 3 "\"kube-ha.io/begun\":\"$1\",\"kube-ha.io/failed\":null" >/dev/null 2>&1 || true
}
announce() { # announce WANTED
  local answer end=$((SECONDS + 20)) \
    annotations="\"kube-ha.io/applied\":\"$1\",\"kube-ha.io/begun\":null,\"kube-ha.io/failed\":null"
  if [[ -f $STATE/os ]]; then annotations+=",\"kube-ha.io/os\":\"$(<"$STATE/os")\""; fi
  while ((SECONDS < end)); do
    if answer=$(annotate_self 10 "$annotations" 2>&1); then return; fi
    sleep 0.5
  done
  # A kubelet registers its Node when it starts, and only then: one that was deleted comes back by that.
  if [[ $answer == *404* ]]; then systemctl restart kubelet; fi
  wait_for 120 "Node $NODE annotated by its own kubelet identity" annotate_self 10 "$annotations"
}
# The time makes the same failure of a later run another text. Tokens and passwords in addresses never leave the
# machine.
tell_failure() { # tell_failure WHY
  local why
  if [[ -z $under_way ]]; then return; fi
  why=$(sed -E 's#://[^/@ ]*@#://***@#g; s/\b[a-z0-9]{6}\.[a-z0-9]{16}\b/***/g' <<<"${1%%$'\n'*}" | tr '"\\|' "'/ " |
    tr -cd '[:print:]' | cut -c 1-200)
  annotate_self 3 "\"kube-ha.io/begun\":null,\"kube-ha.io/failed\":\"$under_way $(date -u +%FT%TZ) $why\""
}
annotate_self() { # annotate_self SECONDS ANNOTATIONS
  if [[ ! -f $IDENTITY || ! -f $CLUSTER_CA ]]; then
    echo "$NODE has no kubelet identity yet"
    return 1
  fi
  curl -fsS --max-time "$1" --noproxy '*' --cacert "$CLUSTER_CA" --cert "$IDENTITY" -o /dev/null -X PATCH \
    -H 'Content-Type: application/merge-patch+json' -d "{\"metadata\":{\"annotations\":{$2}}}" \
    "https://127.0.0.1:3446/api/v1/nodes/$NODE"
}
