# shellcheck shell=bash
# Saves a verified snapshot of etcd on this machine: taken from another member where there is one, proved to be whole,
# no older than what the quorum had when it began, of this cluster; then compressed, encrypted and sealed where that is
# wanted, copied off the machine where a directory or an object store is named, old ones removed. It is etcd's own disk:
# nothing is written where that would leave too little of it. Runs before changes of a control plane, by a timer on
# every etcd machine (the leader's does the work), and for `make backup`; it travels by itself.
# Variables: REASON (empty: nothing to do; schedule: only where the leader is; survivor: of this member alone, with no
#   quorum behind it; any other word is in the file's name), ADDRESS, MEMBERS (words "name=address"), BACKUP_KEEP
#   (snapshots kept of each reason), BACKUP_DIRECTORY (off this machine; empty: none), BACKUP_ENCRYPT (1: with the
#   stack's key), and those of object-store.sh. Changes: /var/lib/kube-ha/backups, the marks backup and backup.begun.
# A file is called <cluster>-<time in UTC>-<revision>-<node>-<reason>.db.gz, encrypted .db.gz.enc (older programs wrote
# .db and .db.enc); beside it lies its checksum. By the node's name two that are saved in the same second, when
# leadership moves, do not meet where all of them are copied to.
BACKUPS=$HOME_DIR/backups
BACKUP_LOCK=${BACKUP_LOCK:-$RUN/backup.lock}
GIB=$((1024 ** 3))
survivor="" # process that serves a copy of the data of the only member
marked=1    # etcd says whose it is, so a snapshot has to
copying=""  # what is on its way to BACKUP_DIRECTORY

# shellcheck source=etcdctl.sh disable=SC2154 # here: the folder of run.sh
source "$here/etcdctl.sh"
# shellcheck source=etcd-client.sh
source "$here/etcd-client.sh"
# shellcheck source=seal.sh
source "$here/seal.sh"
# shellcheck source=object-store.sh
source "$here/object-store.sh"
# shellcheck source=store-identity.sh
source "$here/store-identity.sh"

# The phase that changes things may run meanwhile, or be what this is run for: a lock of its own.
own_backups() {
  local want="$CLUSTER $CLUSTER_ID $NODE" is="nobody"
  if [[ -f $STATE/owner ]]; then is=$(<"$STATE/owner"); fi
  [[ $is == "$want" ]] ||
    die "this machine belongs to \"$is\", not to \"$want\" (cluster, id, node)" "back up the cluster that it belongs to"
  install -d -m 700 "${BACKUP_LOCK%/*}"
  exec 7>"$BACKUP_LOCK"
  flock -w 300 7 ||
    die "another backup holds $BACKUP_LOCK since 300 s" "let it end (fuser $BACKUP_LOCK), then try again"
}

# An address at which a quorum answers, this machine's first.
quorum_at() {
  local member address
  for address in "$ADDRESS" $(for member in $MEMBERS; do printf '%s\n' "${member#*=}"; done); do
    if etcdctl_at "$address" member list >/dev/null 2>&1; then
      printf '%s\n' "$address"
      return
    fi
  done
  die "no etcd member with a quorum answers (asked: $ADDRESS $MEMBERS), so there is nothing to back up" \
    "make status shows which members run; with the quorum lost for good: docs/backup.md, one member left"
}

leads_here() {
  local status
  status=$(etcdctl_at "$ADDRESS" endpoint status -w fields 2>/dev/null) || return 1
  [[ $(field MemberID <<<"$status") == "$(field Leader <<<"$status")" ]]
}

# The revision that every snapshot from here on must hold; a read with a quorum behind it.
revision_now() { # revision_now ADDRESS
  local answer mark="kube-ha-cluster:$CLUSTER:$CLUSTER_ID;"
  answer=$(etcdctl_at "$1" get "$IDENTITY_KEY" -w fields) ||
    die "etcd does not tell its revision" "see make status, then try again"
  if [[ $answer != *"$mark"* ]]; then
    # Refused where etcd is out of space: what it has is saved all the same.
    if etcdctl_at "$1" put "$IDENTITY_KEY" "$mark" >/dev/null 2>&1; then
      answer=$(etcdctl_at "$1" get "$IDENTITY_KEY" -w fields)
    fi
  fi
  field Revision <<<"$answer"
}

# Addresses of voters, others before this machine: what is saved here is then off the machine that it was read from.
sources() { # sources ADDRESS-OF-A-MEMBER
  local rows
  rows=$(etcdctl_at "$1" member list -w simple) ||
    die "etcd at $1 does not tell its members any more" "see make status, then try again"
  awk -F', ' -v own="https://$ADDRESS:2380" \
    '$2 == "started" && $6 == "false" {split($4, part, /\/\/|:2380/); if ($4 == own) mine = part[2]; else print part[2]}
      END {if (mine) print mine}' <<<"$rows"
}

# What is not finished goes, of this run as it ends and of those that were killed. Uploads go on beside it: theirs stay
# while they live.
clear_up() {
  local file pid
  if [[ -n $survivor ]]; then kill "$survivor" 2>/dev/null || true; fi # it may have ended
  rm -rf "$BACKUPS/.survivor"
  rm -f "$BACKUPS"/.*.new "$BACKUPS"/.*.part
  if [[ -n $copying ]]; then rm -f "$copying"; fi
  for file in "$BACKUPS"/.sending-*; do
    pid=${file##*/.sending-} pid=${pid%%-*}
    if [[ ! -d /proc/$pid ]]; then rm -f "$file"; fi
  done
}

# disk_of FOLDER: bytes that are free on its file system, and bytes of all of it
disk_of() { timeout 10 df -B1 --output=avail,size "$1" | awk 'NR == 2 {print $1, $2}'; }
# What etcd beside it may still need: a tenth of the disk, from 2 to 8 GiB; of a small one no more than a quarter.
reserve_of() { # reserve_of BYTES
  local reserve=$(($1 / 10)) least=$((2 * GIB < $1 / 4 ? 2 * GIB : $1 / 4))
  if ((reserve < least)); then reserve=$least; fi
  printf '%d\n' $((reserve > 8 * GIB ? 8 * GIB : reserve))
}
mib() { printf '%d MiB\n' $((($1 + 1024 ** 2 - 1) / 1024 ** 2)); }

# make_room FOLDER BYTES RESERVE: says why not where BYTES do not fit there and leave RESERVE. Where it is short the
# oldest of this reason go, as they would after this one; the last one never.
make_room() {
  local free
  free=$(disk_of "$1") || die "the file system of $1 does not tell its room" "see that it is mounted and answers"
  free=${free%% *}
  if ((free >= $2 + $3)); then return; fi
  prune "$1" $((BACKUP_KEEP > 2 ? BACKUP_KEEP - 1 : 1))
  free=$(disk_of "$1") free=${free%% *}
  if ((free >= $2 + $3)); then return; fi
  echo \
    "$(mib \
      "$free") are free in $1, and $(mib \
        $(($2 + $3))) are needed: $(mib "$2") for the snapshot, $(mib "$3") that stay free"
  return 1
}
# A copy of the database as it comes, and packed beside it: together 2.2 times its size at the most.
room_for() { # room_for BYTES OF-DATABASE [MORE BYTES]
  local disk
  disk=$(disk_of "$BACKUPS") ||
    die "the file system of $BACKUPS does not tell its room" "see that it is mounted and answers"
  make_room "$BACKUPS" $(($1 * 22 / 10 + ${2:-0})) "$(reserve_of "${disk##* }")"
}
no_room() { # no_room WHY
  die "there is no room for a snapshot: $1" \
    "lower etcd.backup.keep and run pulumi up, or bring old ones from there to elsewhere (etcd.backup.directory and" \
    "objectStore keep copies); make defrag makes the database smaller"
}

save_from() { # save_from ADDRESS FILE [PORT]
  local answer
  rm -f "$2" "$2.part"
  # Without a limit of etcdctl's own, which is for single requests.
  answer=$(umask 077 && LONG_S=600 etcdctl_at "$1:${3:-2379}" snapshot save "$2" 2>&1) || {
    log "no snapshot from $1: $(tail -n 1 <<<"$answer" | cut -c1-300)"
    return 1
  }
}

# A member that runs and has lost the others gives its data. One that was started without them does not serve before it
# has a leader: a copy of its data is made a cluster of its own, at ports that nobody knows, for as long as that takes.
# What it has itself stays as it is.
save_of_survivor() { # save_of_survivor FILE
  local copy=$BACKUPS/.survivor unit=$ROOT/etc/systemd/system/etcd.service short size flags
  size=$(stat -c %s "$HOME_DIR/etcd/member/snap/db") ||
    die "there is no data of etcd in $HOME_DIR/etcd" "name a member that has data (FROM=...)"
  if open_port "$ADDRESS" 2379; then
    short=$(room_for "$size") || no_room "$short"
    save_from "$ADDRESS" "$1"
    return
  fi
  short=$(room_for "$size" "$(du -sb "$HOME_DIR/etcd" | cut -f1)") || no_room "$short"
  systemctl stop etcd
  rm -rf "$copy"
  cp -a "$HOME_DIR/etcd" "$copy"
  # As its unit starts it, but for where the data is.
  mapfile -t flags < <(awk '/^ExecStart=/ {for (i = 2; i <= NF; i++) if ($i !~ /^--data-dir=/) print $i}' "$unit")
  (
    set -a
    # shellcheck source=/dev/null
    source "$PKI/etcd.env"
    export ETCD_DATA_DIR=$copy ETCD_FORCE_NEW_CLUSTER=true ETCD_LISTEN_METRICS_URLS=""
    export ETCD_LISTEN_CLIENT_URLS=https://$ADDRESS:2389 ETCD_LISTEN_PEER_URLS=https://$ADDRESS:2390
    exec timeout 900 etcd "${flags[@]}"
  ) >"$STATE/survivor.log" 2>&1 7>&- 8>&- </dev/null &
  survivor=$!
  wait_for 120 "etcd with a copy of this member's data (see $STATE/survivor.log)" serves_alone
  save_from "$ADDRESS" "$1" 2389
}
serves_alone() { answers "$ADDRESS:2389"; }

revision_of() { etcdutl snapshot status "$1" -w fields 2>/dev/null | field Revision; }
is_marked() { # is_marked ADDRESS: what etcd holds says whose it is
  [[ $(etcdctl_at "$1" get "$IDENTITY_KEY" --print-value-only) == *"kube-ha-cluster:$CLUSTER:$CLUSTER_ID;"* ]]
}
of_this_cluster() { grep -aq "kube-ha-cluster:$CLUSTER:$CLUSTER_ID;" "$1"; }

# verified FILE REVISION: whole, readable, of this cluster, and no older than REVISION (empty: of any age).
verified() {
  local revision
  if ! is_whole "$1"; then
    log "the snapshot is not whole: its checksum does not fit"
    return 1
  fi
  revision=$(revision_of "$1") || revision=""
  if [[ -z $revision ]]; then
    log "etcdutl cannot read the snapshot"
    return 1
  fi
  if [[ -n $2 ]] && ((revision < $2)); then
    log "the snapshot is of revision $revision, etcd had $2 before: that member is behind"
    return 1
  fi
  if [[ -n $2 && $marked == 1 ]] && ! of_this_cluster "$1"; then
    log "the snapshot does not say that it is of $CLUSTER $CLUSTER_ID"
    return 1
  fi
}

take_snapshot() { # take_snapshot FILE: the first source whose snapshot is as it should be
  local at="" at_least="" address size short=""
  if [[ $REASON == survivor ]]; then
    save_of_survivor "$1" || die "this member gives no snapshot" "journalctl -u etcd on $NODE tells why"
    verified "$1" "" || die "the snapshot of this member cannot be used" "try another member that has data (FROM=...)"
    return
  fi
  at=$(quorum_at)
  at_least=$(revision_now "$at")
  tell_alarms "$at"
  if ! is_marked "$at"; then
    marked=0
    log "etcd takes no mark of whose it is: to restore this snapshot say UNMARKED=1"
  fi
  for address in $(sources "$at"); do
    if ! answers "$address" >/dev/null 2>&1; then continue; fi
    size=$(etcdctl_at "$address" endpoint status -w fields | field DBSize) || continue
    if ! short=$(room_for "$size"); then continue; fi
    if save_from "$address" "$1" && verified "$1" "$at_least"; then
      log "snapshot taken from $address"
      return
    fi
  done
  if [[ -n $short ]]; then no_room "$short"; fi
  die "no etcd member gave a snapshot that is whole and up to date" "see the lines above, and make status"
}

# A directory on this machine's own disk would be gone with it, as would one whose mount is missing.
copy_off() { # copy_off FILE
  local into=$BACKUP_DIRECTORY name=${1##*/} here there short
  if [[ -z $into ]]; then return; fi
  [[ -d $into ]] || die "etcd.backup.directory $into is not a folder on $NODE" "mount it there on every etcd machine"
  here=$(stat -c %d "$HOME_DIR") there=$(stat -c %d "$into")
  [[ $here != "$there" ]] ||
    die "etcd.backup.directory $into is on the disk of $NODE itself" \
      "mount what is elsewhere there (is the mount missing?)"
  short=$(make_room "$into" "$(stat -c %s "$1")" $((1024 ** 2))) ||
    die "the snapshot is at $1, and not in etcd.backup.directory: $short" \
      "make room there, or lower etcd.backup.keep and run pulumi up"
  copying=$into/.$name.part
  (umask 077 && cp -f "$1" "$copying" && sync "$copying") ||
    die "the snapshot cannot be copied to $into" "see that root of $NODE may write there, and that there is room"
  (cd "$into" && sha256sum ".$name.part") | awk '{print $1}' | cmp -s - <(awk '{print $1}' "$1.sha256") ||
    die "what was copied to $into is not what was sent" "see to that file system"
  mv -f "$copying" "$into/$name"
  copying=""
  (umask 077 && cp -f "$1.sha256" "$into/$name.sha256")
  prune "$into" "$BACKUP_KEEP"
}

# By name, which begins with the time. Each reason has a quota of its own: many changes on one day do not drive out last
# week.
prune() { # prune FOLDER KEPT
  local file files=()
  find "$1" -maxdepth 1 -name ".$CLUSTER-*.part" -mmin +60 -delete # of copies that were cut off
  mapfile \
    -t files < <(find "$1" -maxdepth 1 -type f -printf '%f\n' | (grep -E "^$(name_form)$" || true) | sort -r |
      tail -n "+$(($2 + 1))")
  for file in "${files[@]}"; do rm -f "$1/$file" "$1/$file.sha256"; done
}
name_form() { printf '%s\n' "$CLUSTER-[0-9]{8}T[0-9]{6}Z-[0-9]+-([a-z0-9.-]+-)?$REASON\.db(\.gz)?(\.enc)?"; }

# named FILE NAME: a snapshot that has its name has all that belongs to it, so the checksum comes first.
named() {
  local sum
  chmod 600 "$1"
  sum=$(sha256sum <"$1")
  sync "$1"
  put 600 "$BACKUPS/$2.sha256" <<<"${sum%% *}  $2" >/dev/null
  mv -f "$1" "$BACKUPS/$2"
  sync "$BACKUPS"
}

back_up() {
  local plain=$BACKUPS/.snapshot.new packed=$BACKUPS/.packed.new revision name bytes begun
  install -d -m 700 "$BACKUPS"
  clear_up
  trap clear_up EXIT
  begun=$(date +%s)
  put 644 "$STATE/backup.begun" <<<"$begun" >/dev/null
  # a lower number frees room, whatever becomes of this one
  for REASON in schedule change manual "$REASON"; do prune "$BACKUPS" "$BACKUP_KEEP"; done
  take_snapshot "$plain"
  revision=$(revision_of "$plain")
  name=$CLUSTER-$(date -u +%Y%m%dT%H%M%SZ)-$revision-$NODE-$REASON.db.gz
  if [[ $BACKUP_ENCRYPT == 1 ]]; then
    name+=.enc
    encrypt "$plain" "$packed"
    seal "$packed" "$name" "$revision"
  else
    compress "$plain" "$packed"
  fi
  rm -f "$plain"
  named "$packed" "$name"
  bytes=$(stat -c %s "$BACKUPS/$name")
  prune "$BACKUPS" "$BACKUP_KEEP"
  copy_off "$BACKUPS/$name"
  printf '%s\t%s\t%s\t%s\t%s\n' "$(date +%s)" "$name" "$bytes" "$revision" "$BACKUP_DIRECTORY" |
    put 644 "$STATE/backup" >/dev/null
  log "saved $BACKUPS/$name, revision $revision, $bytes bytes${BACKUP_DIRECTORY:+, copied to $BACKUP_DIRECTORY}"
  # Before the store has its say: whoever asked can fetch it from here all the same.
  printf 'snapshot\t%s\t%s\t%s\t%s\n' "$BACKUPS/$name" "$(cut -d' ' -f1 "$BACKUPS/$name.sha256")" "$bytes" "$revision"
  send_off "$name"
  # else a later one has begun
  if [[ -f $STATE/backup.begun && $(<"$STATE/backup.begun") == "$begun" ]]; then rm -f "$STATE/backup.begun"; fi
}

main() {
  if [[ -z $REASON ]]; then
    log "nothing is about to change"
    return
  fi
  own_backups
  if [[ $REASON == schedule ]] && ! leads_here; then
    log "another member leads etcd: the backup is its business"
    return
  fi
  back_up
}
