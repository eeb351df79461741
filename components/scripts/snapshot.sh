# shellcheck shell=bash
# Saves a verified snapshot of etcd on this machine: taken from another member where there is one, proved to be whole, no older than what the quorum
# had when it began, of this cluster; then encrypted where that is wanted, copied off the machine where a directory or an object store is named, old
# ones removed.
# Runs before changes of a control plane, by a timer on every etcd machine (the leader's does the work), and for `make backup`; it travels by itself.
# Values: REASON (empty: nothing to do; schedule: only where the leader is; survivor: of this member alone, with no quorum behind it; any other word stands
#   in the file's name), ADDRESS, MEMBERS (words "name=address"), BACKUP_KEEP (snapshots kept of each reason), BACKUP_DIRECTORY (off this machine;
#   empty: none), BACKUP_ENCRYPT (1: with the stack's key), and those of object-store.sh. Owns: /var/lib/kube-ha/backups, the marks backup and backup.begun.
# A file is called <cluster>-<time in UTC>-<revision>-<node>-<reason>.db, encrypted .db.enc; beside it lies its checksum. By the node's name two that
# are saved in the same second, when leadership moves, do not meet where all of them are copied to.
BACKUPS=$HOME_DIR/backups
BACKUP_LOCK=${BACKUP_LOCK:-/run/lock/kube-ha-backup.lock}
# In every cluster of ours, outside of what Kubernetes reads: a snapshot tells by it whose it is.
IDENTITY_KEY=/kube-ha/cluster

# shellcheck source=etcd-client.sh
source "$here/etcd-client.sh"
# shellcheck source=object-store.sh
source "$here/object-store.sh"

# The phase that changes things may run meanwhile, or be what this is run for: a lock of its own.
own_backups() {
  local want="$CLUSTER $CLUSTER_ID $NODE" is="nobody"
  if [[ -f $STATE/owner ]]; then is=$(<"$STATE/owner"); fi
  [[ $is == "$want" ]] || die "this machine belongs to \"$is\", not to \"$want\" (cluster, id, node)" "back up the cluster that it belongs to"
  exec 7>"$BACKUP_LOCK"
  flock -w 300 7 || die "another backup holds $BACKUP_LOCK since 300 s" "let it end (fuser $BACKUP_LOCK), then try again"
}

# An address at which a quorum answers, this machine's first.
quorum_at() {
  local member address
  for address in "$ADDRESS" $(for member in $MEMBERS; do printf '%s\n' "${member#*=}"; done); do
    if open_port "$address" 2379 && etcdctl_at "$address" member list >/dev/null 2>&1; then
      printf '%s\n' "$address"
      return
    fi
  done
  die "no etcd member with a quorum answers (asked: $ADDRESS $MEMBERS), so there is nothing to back up" "make status shows which members run; with the quorum lost for good: docs/backup.md, one member left"
}

leads_here() {
  local status
  status=$(etcdctl_at "$ADDRESS" endpoint status -w fields 2>/dev/null) || return 1
  [[ $(field MemberID <<<"$status") == "$(field Leader <<<"$status")" ]]
}

# The revision that every snapshot from here on must hold; a read with a quorum behind it.
revision_now() { # revision_now ADDRESS
  local answer mark="kube-ha-cluster:$CLUSTER:$CLUSTER_ID;"
  answer=$(etcdctl_at "$1" get "$IDENTITY_KEY" -w fields) || die "etcd does not tell its revision" "see make status, then try again"
  if [[ $answer != *"$mark"* ]]; then
    etcdctl_at "$1" put "$IDENTITY_KEY" "$mark" >/dev/null || die "etcd takes no write" "see make status (alarms, space), then try again"
    answer=$(etcdctl_at "$1" get "$IDENTITY_KEY" -w fields)
  fi
  field Revision <<<"$answer"
}

# Addresses of voters, others before this machine: what is saved here is then off the machine that it was read from.
sources() { # sources ADDRESS-OF-A-MEMBER
  local rows
  rows=$(etcdctl_at "$1" member list -w simple)
  awk -F', ' -v own="https://$ADDRESS:2380" '$2 == "started" && $6 == "false" {split($4, part, /\/\/|:2380/); if ($4 == own) mine = part[2]; else print part[2]} END {if (mine) print mine}' <<<"$rows"
}

save_from() { # save_from ADDRESS FILE [PORT]
  local answer
  rm -f "$2" "$2.part"
  # Without a limit of etcdctl's own, which is for single requests.
  answer=$(umask 077 && timeout 600 etcdctl --endpoints "https://$1:${3:-2379}" --cacert "$PKI/ca.crt" --cert "$PKI/client.crt" --key "$PKI/client.key" --dial-timeout 2s snapshot save "$2" 2>&1) || {
    log "no snapshot from $1: $(tail -n 1 <<<"$answer" | cut -c1-300)"
    return 1
  }
}

# A member that runs and has lost the others gives its data. One that was started without them does not serve before it has a leader: a copy of its
# data is made a cluster of its own, at ports that nobody knows, for as long as that takes. What it has itself stays as it is.
save_of_survivor() { # save_of_survivor FILE
  local copy=$BACKUPS/.survivor pid
  if timeout 3 bash -c "</dev/tcp/$ADDRESS/2379" 2>/dev/null; then
    save_from "$ADDRESS" "$1"
    return
  fi
  systemctl stop etcd
  rm -rf "$copy"
  cp -a "$HOME_DIR/etcd" "$copy"
  (
    set -a
    # shellcheck source=/dev/null
    source "$PKI/etcd.env"
    export ETCD_DATA_DIR=$copy ETCD_FORCE_NEW_CLUSTER=true ETCD_LISTEN_METRICS_URLS=""
    export ETCD_LISTEN_CLIENT_URLS=https://$ADDRESS:2389 ETCD_LISTEN_PEER_URLS=https://$ADDRESS:2390
    exec timeout 900 etcd
  ) >"$STATE/survivor.log" 2>&1 7>&- 8>&- </dev/null &
  pid=$!
  # shellcheck disable=SC2064 # the process of now
  trap "kill $pid 2>/dev/null; rm -rf '$copy'" EXIT
  wait_for 120 "etcd with a copy of this member's data (see $STATE/survivor.log)" serves_alone
  save_from "$ADDRESS" "$1" 2389
}
serves_alone() { etcdctl_at "$ADDRESS:2389" endpoint health; }

revision_of() { etcdutl snapshot status "$1" -w fields 2>/dev/null | field Revision; }
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
  if [[ -n $2 ]] && ! of_this_cluster "$1"; then
    log "the snapshot does not say that it is of $CLUSTER $CLUSTER_ID"
    return 1
  fi
}

take() { # take FILE: the first source whose snapshot is as it should be
  local at="" at_least="" address
  if [[ $REASON == survivor ]]; then
    save_of_survivor "$1" || die "this member gives no snapshot" "journalctl -u etcd on $NODE tells why"
    verified "$1" "" || die "the snapshot of this member cannot be used" "try another member that has data (FROM=...)"
    return
  fi
  at=$(quorum_at)
  at_least=$(revision_now "$at")
  for address in $(sources "$at"); do
    # etcdctl would try for its whole time where nobody answers.
    if ! etcdctl_at "$address" endpoint health >/dev/null 2>&1; then continue; fi
    if save_from "$address" "$1" && verified "$1" "$at_least"; then
      log "snapshot taken from $address"
      return
    fi
  done
  rm -f "$1"
  die "no etcd member gave a snapshot that is whole and up to date" "see the lines above; make room in $BACKUPS ($(df -h --output=avail "$BACKUPS" | tail -n 1 | xargs) left)"
}

encrypt() { # encrypt FILE INTO
  [[ -s $PKI/backup.key ]] || die "there is no $PKI/backup.key to encrypt with" "run pulumi up, which places it"
  (umask 077 && openssl enc -aes-256-cbc -pbkdf2 -iter 10000 -salt -pass "file:$PKI/backup.key" -in "$1" -out "$2")
  # What cannot be opened again is no backup.
  openssl enc -d -aes-256-cbc -pbkdf2 -iter 10000 -pass "file:$PKI/backup.key" -in "$2" | cmp -s - "$1" || die "the encrypted snapshot does not open again" "try again; if it stays, report it, and set etcd.backup.encrypt: false"
}

# A directory on this machine's own disk would be gone with it, as would one whose mount is missing.
copy_off() { # copy_off FILE
  local into=$BACKUP_DIRECTORY name=${1##*/} here there
  if [[ -z $into ]]; then return; fi
  [[ -d $into ]] || die "etcd.backup.directory $into is no folder on $NODE" "mount it there on every etcd machine"
  here=$(stat -c %d "$HOME_DIR") there=$(stat -c %d "$into")
  [[ $here != "$there" ]] || die "etcd.backup.directory $into is on the disk of $NODE itself" "mount what is elsewhere there (is the mount missing?)"
  (umask 077 && cp -f "$1" "$into/.$name.part" && sync "$into/.$name.part") || die "the snapshot cannot be copied to $into" "see that root of $NODE may write there, and that there is room"
  (cd "$into" && sha256sum ".$name.part") | awk '{print $1}' | cmp -s - <(awk '{print $1}' "$1.sha256") || die "what was copied to $into is not what was sent" "see to that file system"
  mv -f "$into/.$name.part" "$into/$name"
  (umask 077 && cp -f "$1.sha256" "$into/$name.sha256")
  prune "$into"
}

# By name, which begins with the time. Each reason has a quota of its own: many changes on one day do not drive out last week.
prune() { # prune FOLDER
  local file files=()
  find "$1" -maxdepth 1 -name ".$CLUSTER-*.part" -mmin +60 -delete # of copies that were cut off
  mapfile -t files < <(find "$1" -maxdepth 1 -type f -printf '%f\n' | grep -E "^$CLUSTER-[0-9]{8}T[0-9]{6}Z-[0-9]+-([a-z0-9.-]+-)?$REASON\.db(\.enc)?$" | sort -r | tail -n "+$((BACKUP_KEEP + 1))")
  for file in "${files[@]}"; do rm -f "$1/$file" "$1/$file.sha256"; done
}

back_up() {
  local plain=$BACKUPS/.snapshot.new file revision name sum bytes
  install -d -m 700 "$BACKUPS"
  rm -f "$BACKUPS"/.*.new "$BACKUPS"/.*.part # of a run that was killed
  date +%s | put 644 "$STATE/backup.begun" >/dev/null
  take "$plain"
  revision=$(revision_of "$plain")
  name=$CLUSTER-$(date -u +%Y%m%dT%H%M%SZ)-$revision-$NODE-$REASON.db
  file=$plain
  if [[ $BACKUP_ENCRYPT == 1 ]]; then
    name+=.enc file=$BACKUPS/.encrypted.new
    encrypt "$plain" "$file"
    rm -f "$plain"
  fi
  chmod 600 "$file"
  sum=$(sha256sum <"$file")
  sum=${sum%% *} bytes=$(stat -c %s "$file")
  sync "$file"
  # The checksum first: a snapshot that has its name has all that belongs to it.
  put 600 "$BACKUPS/$name.sha256" <<<"$sum  $name" >/dev/null
  mv -f "$file" "$BACKUPS/$name"
  prune "$BACKUPS"
  copy_off "$BACKUPS/$name"
  printf '%s\t%s\t%s\t%s\t%s\n' "$(date +%s)" "$name" "$bytes" "$revision" "$BACKUP_DIRECTORY" | put 644 "$STATE/backup" >/dev/null
  log "saved $BACKUPS/$name, revision $revision, $bytes bytes${BACKUP_DIRECTORY:+, copied to $BACKUP_DIRECTORY}"
  # Before the store has its say: whoever asked can fetch it from here all the same.
  printf 'snapshot\t%s\t%s\t%s\t%s\n' "$BACKUPS/$name" "$sum" "$bytes" "$revision"
  send_off "$BACKUPS/$name"
  rm -f "$STATE/backup.begun"
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
