# shellcheck shell=bash
# What every phase shares; sourced by run.sh after the values. Only definitions and settings: tests source it too.
# Values of every phase: NODE, CLUSTER (name), CLUSTER_ID (never changes), CONTAINER (1: the machine is a container), INCARNATION (which machine
#   under this node's name, a number that only rises; 1 when it is not said).
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
# plain: text that others may have written, on stdin, as people may see it: printable ASCII, and nothing that a log of CI takes for a command.
plain() { tr '\t\r' '  ' | tr -cd '\n\040-\176' | sed -E 's/^( *)::/\1: :/; s/##\[/# [/g'; }
die() {
  trap - ERR
  printf 'ERROR %s: %s\n  do: %s\n' "$NODE" "$(plain <<<"${1:0:6000}")" "$(plain <<<"${2:-$HINT}")" >&8
  (tell_failure "$1") >/dev/null 2>&1 || true # the API may be away; the error above is what counts
  exit $((BASH_SUBSHELL > 0 ? 97 : 1))
}
# 97: a die within $(...) has said what there is to say.
failed() {
  if (($1 == 97)); then exit 97; fi
  die "failed (line $2): $3"
}
# BASH_COMMAND is not expanded, so no value of a variable can leak here.
trap 'failed $? "$LINENO" "$BASH_COMMAND"' ERR

# put MODE PATH [OWNER:GROUP]: make PATH hold stdin; readers see the old file or the new one, after a power cut too.
put() {
  local mode=$1 path=$2 owner=${3:-} new
  mkdir -p "${path%/*}"
  # Same folder, for an atomic mv; dot name, for kubelet runs every other file among the static pods; always the same name, so that what
  # a killed run left is gone with the next.
  new=${path%/*}/.${path##*/}.new
  rm -f "$new"
  (umask 077 && cat >"$new")
  chmod "$mode" "$new"
  if [[ -n $owner ]]; then chown "$owner" "$new"; fi
  if cmp -s "$new" "$path" && [[ $(stat -c %a:%u:%g "$path") == "$(stat -c %a:%u:%g "$new")" ]]; then
    rm -f "$new"
    return
  fi
  # Or a file system may keep the name and lose what it stands for: an empty file where the state says that this is done.
  sync -d "$new"
  mv -f "$new" "$path"
  sync "${path%/*}"
  changes=$((changes + 1))
  log "wrote $path"
}

# wait_for SECONDS WHAT COMMAND...: poll, never for ever, keep the last answer. COMMAND is a program, or a function that bounds itself.
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
  if settled "$unit" "$want"; then
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
settled() { [[ -f $STATE/$1.sum && $(<"$STATE/$1.sum") == "$2" ]] && systemctl is-active -q "$1"; }

# published_sum FILE-NAME URL: the SHA-256 that upstream publishes, in a file of `sum` or `sum  name` lines.
published_sum() {
  local text redirects=()
  # A redirect must not lead from https to where anybody can change the answer.
  if [[ $2 == https:* ]]; then redirects=(--proto-redir "=https"); fi
  text=$(curl -fsSL --proto '=https,http' "${redirects[@]}" --connect-timeout 10 --retry 4 --retry-connrefused --max-time 60 "$2") || die "cannot download the checksum $2" "see that $NODE reaches that address, or set a mirror"
  awk -v name="$1" '{sub(/^\*/, "", $2); sub(/.*\//, "", $2)} length($1) == 64 && $1 ~ /^[0-9a-f]+$/ && ($2 == "" || $2 == name) {print $1; exit}' <<<"$text"
}

# fetch URL SUM PATH: make PATH the verified download. SUM is a SHA-256, or published:<url>.
fetch() {
  local url=$1 sum=$2 path=$3 answer is redirects=()
  if [[ $url == https:* ]]; then redirects=(--proto-redir "=https"); fi
  if [[ $sum == published:* ]]; then
    sum=$(published_sum "${url##*/}" "${sum#published:}")
    [[ -n $sum ]] || die "no SHA-256 of ${url##*/} in ${2#published:}" "report the address, or set a mirror"
  fi
  mkdir -p "${path%/*}"
  answer=$(curl -fsSL --proto '=http,https' "${redirects[@]}" --connect-timeout 10 --retry 4 --retry-delay 1 --retry-connrefused --max-time 900 -o "$path.part" "$url" 2>&1) || not_fetched $? "$url" "$path" "$answer"
  is=$(sha256sum <"$path.part")
  [[ ${is%% *} == "$sum" ]] || die "$url has sha256 ${is%% *}, wanted $sum" "do not use this file: find out who changed it, or make the bundle again"
  mv -f "$path.part" "$path"
}

not_fetched() { # not_fetched STATUS URL PATH ANSWER
  local todo="see that $NODE reaches that address (mirror, proxy, firewall), then run pulumi up again"
  # 23: what came could not be written.
  if (($1 == 23)); then todo="make room in ${3%/*} ($(df -h --output=avail "${3%/*}" 2>/dev/null | tail -n 1 | xargs) left), then run pulumi up again"; fi
  die "cannot download $2: $4" "$todo"
}

# installed NAME SUM: is this very artefact in place, as it was put there?
installed() { [[ -f $STATE/$1.artefact && $(<"$STATE/$1.artefact") == "$2" ]] && untouched "$1"; }
# untouched NAME: sizes and times are those of the installation; a hash of every binary in every run would take seconds.
untouched() {
  local mark=$STATE/$1.files paths is
  if [[ ! -f $mark ]]; then return; fi # installed by a version that kept none
  mapfile -t paths < <(cut -d' ' -f3- "$mark")
  is=$(stat -c '%s %.Y %n' -- "${paths[@]}" 2>&1) || true # a file that is gone is an answer
  [[ $is == "$(<"$mark")" ]]
}
# mark_installed NAME SUM FILE...: after the last FILE is in place. The unit of that name may still run what was there before.
mark_installed() {
  local name=$1 sum=$2 stamps
  shift 2
  stamps=$(stat -c '%s %.Y %n' -- "$@")
  rm -f "$STATE/$name.service.sum"
  put 644 "$STATE/$name.files" <<<"$stamps"
  put 644 "$STATE/$name.artefact" <<<"$sum"
}

# install_binary NAME URL SHA256 TARGET: one file, swapped in whole while an old one may run.
install_binary() {
  if installed "$1" "$3"; then return; fi
  fetch "$2" "$3" "$4.new"
  chmod 755 "$4.new"
  mv -f "$4.new" "$4"
  sync -f "$4" # before the mark that says that it is there
  mark_installed "$1" "$3" "$4"
}

# install_archive NAME URL SHA256 FOLDER STRIP MEMBER...: members of a tarball into FOLDER.
install_archive() {
  local name=$1 url=$2 sum=$3 folder=$4 strip=$5 path=$HOME_DIR/cache/$1 listed files=()
  shift 5
  if installed "$name" "$sum"; then return; fi
  fetch "$url" "$sum" "$path"
  mkdir -p "$folder"
  # tar makes each file anew and never writes into the old one, which may be running (--unlink-first would do the same, and fail at folders that
  # are not empty). Files get the time of now: that of the archive says nothing.
  listed=$(tar -xzvf "$path" -C "$folder" --no-same-owner --touch --show-transformed-names --strip-components="$strip" "$@")
  rm -f "$path"
  mapfile -t files < <(awk -v folder="$folder" '!/\/$/ {print folder "/" $0}' <<<"$listed")
  sync -f "$folder"
  mark_installed "$name" "$sum" "${files[@]}"
}

minor_of() { # minor_of VERSION: v1.36.3 as 1036, for comparing
  [[ $1 =~ ^v?([0-9]+)\.([0-9]+) ]] || die "'$1' is no version"
  printf '%d\n' $((BASH_REMATCH[1] * 1000 + BASH_REMATCH[2]))
}

# One run at a time: a second one may have been left behind by an engine that died. Such a one does nothing once it gets its turn: what it was
# asked for may be older than what has been done meanwhile.
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
  pid=$(awk -v end=":$inode" '$2 == "FLOCK" && substr($6, length($6) - length(end) + 1) == end {print $5; exit}' /proc/locks)
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
# For those who wait and change nothing meanwhile: nobody is left who waits with them, and the next run waits for this one.
end_unheard() {
  if [[ -n ${SESSION:-} && ! -d /proc/$SESSION ]]; then die "the connection that asked for this is gone" "run pulumi up again"; fi
}

# The machine belongs to one incarnation of one node of one cluster until it is released.
own() { # own [RENEW]: RENEW makes the machine of an older incarnation a clean one that is still ours; without it such a machine is an error
  local want="$CLUSTER $CLUSTER_ID $NODE" here
  lock
  # An empty mark is what a power cut has left of one.
  if [[ -s $STATE/owner ]]; then
    [[ $(<"$STATE/owner") == "$want" ]] || die "this machine belongs to \"$(<"$STATE/owner")\", not to \"$want\" (cluster, id, node)" "take it out of this stack's config, or release it there first; to wipe it by hand: /usr/local/lib/kube-ha/leave"
    here=$(incarnation)
    ((here <= ${INCARNATION:-1})) || die "this machine is incarnation $here of $NODE, the config wants ${INCARNATION:-1}" "set nodes.$NODE.generation to $here, or to $((here + 1)) to make it anew"
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
  [[ $here =~ ^[1-9][0-9]*$ ]] || die "$STATE/incarnation holds no number" "write into it nodes.$NODE.generation of the day when this machine joined"
  printf '%s\n' "$here"
}
refuse_older() { die "this machine is still incarnation $(incarnation) of $NODE, the config wants $INCARNATION" "run pulumi up again: the phase node wipes it first"; }
finish() { log "done, changes=$changes"; }

RESUME=kube-ha-resume.service # goes on with phase node after a reboot (os.sh)
# The machine itself goes on first with what it was doing when it rebooted. To be called before the lock is taken.
await_resumed() { wait_for 600 "end of the update that this machine goes on with after its reboot (journalctl -u $RESUME)" resumed; }
resumed() { [[ ! -e $ROOT/etc/systemd/system/$RESUME ]]; }

# A joined node follows the kubelet settings kept in the cluster; its own identity may read them.
follow_kubelet_settings() {
  rm -rf /etc/kubernetes/tmp/kubeadm-kubelet-config* # kubeadm's copies of the settings before, one a run
  kubeadm upgrade node phase kubelet-config >"$STATE/kubelet-config.log" 2>&1 || die "kubelet settings cannot be read from the cluster: $(tail -n 3 "$STATE/kubelet-config.log")" "see that https://127.0.0.1:3446/readyz answers on $NODE"
  settle_kubelet
}
kubelet_files() { printf '%s\n' "$ROOT"/etc/systemd/system/{kubelet.service,kubelet.service.d/10-kubeadm.conf} "$ROOT/var/lib/kubelet/config.yaml" "$STATE/kubelet.artefact"; }
# kubeadm makes them for everybody to read.
close_kubelet_files() {
  local name
  for name in config.yaml kubeadm-flags.env instance-config.yaml; do
    if [[ -f $ROOT/var/lib/kubelet/$name ]]; then chmod 600 "$ROOT/var/lib/kubelet/$name"; fi
  done
}
settle_kubelet() {
  local files
  close_kubelet_files
  mapfile -t files < <(kubelet_files)
  settle restart kubelet.service "${files[@]}"
}
# kubeadm has just started it with the files that lie there now: no reason for another start.
kubelet_started() {
  local sums
  close_kubelet_files
  sums=$(kubelet_files | xargs sha256sum --)
  put 600 "$STATE/kubelet.service.sum" <<<"$sums"
}

# An etcd that died before it had joined leaves folders, but no log: it has no data (etcd itself asks for the same).
etcd_has_data() { compgen -G "${DATA:-$HOME_DIR/etcd}/member/wal/*.wal" >/dev/null; }

# A removed member stops by itself; one that answers with a list that holds it has its vote, unless another member answers with one that does not: then the etcd
# here is a cluster of its own.
still_votes() {
  local rows address
  rows=$(listed_by 127.0.0.1) || return 1
  if [[ $rows != *", $NODE, "* ]]; then return 1; fi
  for address in $(other_members); do
    if rows=$(listed_by "$address") && [[ $rows != *", $NODE, "* ]]; then return 1; fi
  done
}
listed_by() { # listed_by ADDRESS: with a quorum behind it
  timeout 12 etcdctl --endpoints "https://$1:2379" --cacert "$ROOT/etc/kube-ha/etcd/ca.crt" --cert "$ROOT/etc/kube-ha/etcd/client.crt" --key "$ROOT/etc/kube-ha/etcd/client.key" --dial-timeout 2s --command-timeout 5s member list -w simple 2>/dev/null
}
# As its last phase knew them: what is kept for the guard, or by a version before it for backups.
other_members() (
  local file MEMBERS="" ADDRESS="" member
  for file in "$ROOT"/etc/kube-ha/etcd/{guard,backup}.values; do
    # shellcheck source=/dev/null
    if [[ -z $MEMBERS && -f $file ]]; then source "$file"; fi
  done
  for member in $MEMBERS; do
    if [[ ${member#*=} != "$ADDRESS" ]]; then printf '%s\n' "${member#*=}"; fi
  done
)
# Data of a member that was removed can never be used by any etcd; it is kept until the next one here is removed.
set_aside_etcd() {
  local data=${DATA:-$HOME_DIR/etcd}
  if [[ ! -d $data/member ]]; then return; fi
  rm -rf "$data.removed"
  mkdir -m 700 "$data.removed"
  mv "$data/member" "$data.removed/"
}

# forget_keys PREFIX: keys below it are gone for good, and nobody has taken them away by hand (pki.sh keeps the sums).
forget_keys() {
  local mark=$STATE/pki.sums rest
  if [[ ! -f $mark ]]; then return; fi
  rest=$(awk -v prefix="$1" 'index($2, prefix) != 1' "$mark")
  put 600 "$mark" <<<"$rest"
}

# A kubelet writes its kubeconfig before it has a certificate, and a power cut leaves half of a file: a machine has joined when it has all of it.
joined() { grep -qs 'client-key' "$ROOT/etc/kubernetes/kubelet.conf" && grep -qs 'END CERTIFICATE' "$IDENTITY" && grep -qs 'END .*PRIVATE KEY' "$IDENTITY"; }

kubectl_admin() { kubectl --kubeconfig /etc/kubernetes/admin.conf --request-timeout 10s "$@"; }
# A kubelet may annotate its own Node: nodes.sh reads there that this node has begun, has applied what is wanted, or why it could not.
begin() { # begin WANTED: from here on this phase works on it; what an earlier run failed with no longer counts
  under_way=$1
  annotate_self 3 "\"kube-ha.io/begun\":\"$1\",\"kube-ha.io/failed\":null" >/dev/null 2>&1 || true # no node yet, or the API is away
}
announce() { # announce WANTED
  local answer end=$((SECONDS + 20)) annotations="\"kube-ha.io/applied\":\"$1\",\"kube-ha.io/begun\":null,\"kube-ha.io/failed\":null"
  if [[ -f $STATE/os ]]; then annotations+=",\"kube-ha.io/os\":\"$(<"$STATE/os")\""; fi
  while ((SECONDS < end)); do
    if answer=$(annotate_self 10 "$annotations" 2>&1); then return; fi
    sleep 0.5
  done
  # A kubelet registers its Node when it starts, and only then: one that was deleted comes back by that.
  if [[ $answer == *404* ]]; then systemctl restart kubelet; fi
  wait_for 120 "Node $NODE annotated by its own kubelet identity" annotate_self 10 "$annotations"
}
# The time makes the same failure of a later run another text. Tokens and passwords in addresses never leave the machine.
tell_failure() { # tell_failure WHY
  local why
  if [[ -z $under_way ]]; then return; fi
  why=$(sed -E 's#://[^/@ ]*@#://***@#g; s/\b[a-z0-9]{6}\.[a-z0-9]{16}\b/***/g' <<<"${1%%$'\n'*}" | tr '"\\|' "'/ " | tr -cd '[:print:]' | cut -c 1-200)
  annotate_self 3 "\"kube-ha.io/begun\":null,\"kube-ha.io/failed\":\"$under_way $(date -u +%FT%TZ) $why\""
}
annotate_self() { # annotate_self SECONDS ANNOTATIONS
  if [[ ! -f $IDENTITY || ! -f $CLUSTER_CA ]]; then
    echo "$NODE has no kubelet identity yet"
    return 1
  fi
  curl -fsS --max-time "$1" --noproxy '*' --cacert "$CLUSTER_CA" --cert "$IDENTITY" -o /dev/null -X PATCH \
    -H 'Content-Type: application/merge-patch+json' -d "{\"metadata\":{\"annotations\":{$2}}}" "https://127.0.0.1:3446/api/v1/nodes/$NODE"
}
