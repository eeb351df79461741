# shellcheck shell=bash
# Makes this machine a healthy, voting member of the cluster's etcd. A machine with data starts as the member it is. One
# without data joins the members that answer as a learner, and is promoted when it has caught up. Only the bootstrap
# member of a cluster that never existed may bootstrap one.
# Variables:
#   ADDRESS             of this machine
#   MEMBERS             words "name=address": all wanted members
#   BOOTSTRAP           1: may bootstrap the cluster
#   BOOTSTRAP_UNTIL     seconds since 1970; may be unset
#   ARTEFACTS, ARCH_DIR lines "name url sha256", and the folder in the tarball
#   ETCD_ENV, ETCD_UNIT texts of files
#   ETCD_CA             hash of etcd's CAs, which it reads at a start; may be unset
#   BACKUP_EVERY_H      hours between backups; 0: no timer
#   BACKUP_KEEP, BACKUP_DIRECTORY, BACKUP_ENCRYPT: see snapshot.sh
#   BACKUP_STORE, BACKUP_REGION, BACKUP_ACCESS_KEY, BACKUP_IDENTITY, BACKUP_CA, BACKUP_PRUNE, BACKUP_PROXY: see
#                       object-store.sh; unset where there is no object store
# Changes: units etcd, kube-ha-etcd-guard and kube-ha-backup, /etc/kube-ha/etcd but for keys, /var/lib/kube-ha/etcd.
DATA=$HOME_DIR/etcd
PEER_URL=https://$ADDRESS:2380
BOOTSTRAP_ENV=$ROOT/etc/kube-ha/etcd/bootstrap.env

# shellcheck source=etcdctl.sh disable=SC2154 # here: the folder of run.sh
source "$here/etcdctl.sh"
# shellcheck source=downloads.sh disable=SC2154 # here: the folder of run.sh
source "$here/downloads.sh"
# shellcheck source=etcd-client.sh disable=SC2154 # run.sh says where
source "$here/etcd-client.sh"
# shellcheck source=etcd-identity.sh disable=SC2154
source "$here/etcd-identity.sh"
# shellcheck source=etcd-guard.sh disable=SC2154
source "$here/etcd-guard.sh"
# shellcheck source=etcd-join.sh disable=SC2154
source "$here/etcd-join.sh"
# shellcheck source=aside.sh disable=SC2154
source "$here/aside.sh"
# shellcheck source=admin.sh disable=SC2154
source "$here/admin.sh"

binaries() {
  local url sum
  read -r url sum < <(awk '$1 == "etcd" {print $2, $3}' <<<"$ARTEFACTS")
  install_archive etcd "$url" "$sum" /usr/local/bin 1 "$ARCH_DIR/etcd" "$ARCH_DIR/etcdctl" "$ARCH_DIR/etcdutl"
}

# etcd tells which minor version all members have reached: the data is of that version, and no older member can take
# part.
refuse_older_etcd() {
  local is member wanted=${ARCH_DIR#etcd-v}
  wanted=${wanted%%-*}
  for member in here=127.0.0.1 $MEMBERS; do
    is=$(cluster_version "${member#*=}")
    if [[ -n $is ]]; then break; fi
  done
  if [[ -z $is ]] || (($(minor_of "$wanted") >= $(minor_of "$is"))); then return; fi
  die "all etcd members have reached ${is%.*}, and its data is nothing for $wanted" \
    "set cluster.etcd to a version of ${is%.*} and run pulumi up; to go back, restore a snapshot of etcd from before" \
    "the change"
}
cluster_version() { # cluster_version ADDRESS: empty where nothing answers, or nothing is decided yet
  local answer
  answer=$(curl -fsS --max-time 3 --noproxy '*' --cacert /etc/kube-ha/etcd/ca.crt --cert /etc/kube-ha/etcd/client.crt \
    --key /etc/kube-ha/etcd/client.key "https://$1:2379/version" 2>/dev/null) || return 0
  if [[ $answer =~ \"etcdcluster\":\"([0-9.]+)\" ]]; then printf '%s\n' "${BASH_REMATCH[1]}"; fi
}

# A start that the guard refuses would be one that fails without a word.
start_etcd() { # start_etcd FILE...
  local said
  said=$(may_start) || die "$said"
  settle restart etcd.service "$@"
  wait_for 90 "etcd answering on https://127.0.0.1:2379" etcdctl_at 127.0.0.1 endpoint status
}

# Proved to be of the cluster that the others are of, it is written down as what this machine's member is.
prove_cluster() {
  local rows ours epoch is mark
  rows=$(identities)
  read -r ours epoch < <(our_cluster "$rows") ||
    die "which etcd is this cluster's cannot be told: $(told_clusters "$rows")" \
      "stop etcd on the machines that are not (systemctl stop etcd), then run pulumi up again"
  read -r is mark < <(awk -v address="$ADDRESS" '$1 == address {print $2, $4}' <<<"$rows") ||
    die "etcd at $ADDRESS does not tell which cluster it is of"
  [[ $is == "$ours" ]] ||
    die \
      "etcd here is of cluster $(printf %x \
        "$is"), and this cluster is $(printf %x "$ours"): $(told_clusters "$rows")" \
      "bring the members of that one back (journalctl -u etcd there), then run pulumi up again: this one joins it"
  if [[ $mark == none ]]; then
    etcdctl_at 127.0.0.1 put "$MARK_KEY" "kube-ha-cluster:$CLUSTER:$CLUSTER_ID;" >/dev/null ||
      log "etcd takes no write: its cluster bears no mark yet"
  fi
  record_cluster "$ours" "$epoch"
}

# A learner answers no member list, but tells its own status.
status_field() { etcdctl_at 127.0.0.1 endpoint status -w fields | field "$1"; }

promote() {
  local id
  if [[ $(status_field IsLearner) == false ]]; then return; fi
  id=$(printf %x "$(status_field MemberID)")
  wait_for 300 "learner $NODE caught up and promoted" promote_once "$id"
  log "promoted to voting member"
  changes=$((changes + 1))
}
promote_once() {
  local member address
  for member in $MEMBERS; do
    address=${member#*=}
    if [[ $address != "$ADDRESS" ]] && etcdctl_at "$address" member promote "$1"; then return 0; fi
  done
  # The promotion may have been done by an answer that got lost.
  [[ $(status_field IsLearner) == false ]]
}

# A planned restart: the others have a quorum without this member, the API server beside it, which asks it alone, is out
# of service, and no election is needed.
before_restart() {
  local successor
  successor=$(etcd_successor)
  if [[ -z $successor ]]; then return; fi
  if [[ -f $MANIFESTS/kube-apiserver.yaml ]] && others_serve; then
    log "its API server drains first"
    drain_api_server
  fi
  hand_over_etcd "$successor"
}

# What etcd-stopped.sh has put away, when this member had been removed.
recall_api_server() {
  if [[ ! -d $ASIDE.removed ]]; then return; fi
  install -d -m 700 "$ASIDE"
  cp -n "$ASIDE.removed"/*.yaml "$ASIDE/"
  rm -rf "$ASIDE.removed"
}

# What systemd asks before etcd starts, and by a timer. Sent by itself (a restore), this phase has no files beside it:
# those of the machine stay.
guard() {
  local name lib=$ROOT/usr/local/lib/kube-ha \
    units=("$ROOT/etc/systemd/system/kube-ha-etcd-guard.service" "$ROOT/etc/systemd/system/kube-ha-etcd-guard.timer")
  for name in etcdctl etcd-client etcd-identity etcd-stopped etcd-guard; do
    if [[ -f ${here:-}/$name.sh ]]; then put 644 "$lib/$name.sh" <"$here/$name.sh"; fi
  done
  # The unit and settings of a version before it know none, and stay as they are together; with the next pulumi up they
  # do.
  if [[ ! -f $lib/etcd-guard.sh ]]; then return; fi
  printf 'NODE=%q\nADDRESS=%q\nMEMBERS=%q\nCLUSTER=%q\nCLUSTER_ID=%q\n' "$NODE" "$ADDRESS" "$MEMBERS" "$CLUSTER" \
    "$CLUSTER_ID" | put 600 "$PKI/guard.values"
  put 600 "$PKI/etcd.env" <<<"$ETCD_ENV"
  put 644 "$ROOT/etc/systemd/system/etcd.service" <<<"$ETCD_UNIT"
  put 644 "${units[0]}" <<<"[Unit]
Description=Whether etcd here is of this cluster

[Service]
Type=oneshot
ExecStart=/bin/bash /usr/local/lib/kube-ha/etcd-guard.sh running
TimeoutStartSec=60
# Of every ten seconds nobody wants to read that it was well.
LogLevelMax=notice"
  put 644 "${units[1]}" <<<"[Unit]
Description=Whether etcd here is of this cluster, every 10 s

[Timer]
OnActiveSec=10
OnUnitInactiveSec=10
AccuracySec=1

[Install]
WantedBy=timers.target"
}

watch_etcd() {
  local units=("$ROOT/etc/systemd/system/kube-ha-etcd-guard.service"
    "$ROOT/etc/systemd/system/kube-ha-etcd-guard.timer")
  if [[ -f ${units[1]} ]]; then settle restart kube-ha-etcd-guard.timer "${units[@]}"; fi
}

# The timer of backups runs on every member, and the leader's does the work (snapshot.sh). Nothing about it restarts
# etcd.
backups() {
  if [[ -z ${BACKUP_EVERY_H:-} ]]; then return; fi # the founding run does not know it, the one after it does
  local units=("$ROOT/etc/systemd/system/kube-ha-backup.service" "$ROOT/etc/systemd/system/kube-ha-backup.timer") \
  at="00/$BACKUP_EVERY_H"
  if [[ $BACKUP_EVERY_H == 24 ]]; then at=00; fi
  forget_store
  if [[ $BACKUP_EVERY_H == 0 ]]; then
    if [[ ! -e ${units[1]} ]]; then return; fi
    systemctl disable -q --now kube-ha-backup.timer
    rm -f "${units[@]}" "$STATE/kube-ha-backup.timer.sum"
    systemctl daemon-reload
    changes=$((changes + 1))
    log "no more backups by a timer"
    return
  fi
  {
    printf 'NODE=%q\nCLUSTER=%q\nCLUSTER_ID=%q\nCONTAINER=%q\nINCARNATION=%q\n' \
      "$NODE" "$CLUSTER" "$CLUSTER_ID" "$CONTAINER" "${INCARNATION:-1}"
    printf 'SCRIPT_SUM=kept\nREASON=schedule\nADDRESS=%q\nMEMBERS=%q\n' "$ADDRESS" "$MEMBERS"
    printf 'BACKUP_KEEP=%q\nBACKUP_DIRECTORY=%q\nBACKUP_ENCRYPT=%q\n' \
      "$BACKUP_KEEP" "$BACKUP_DIRECTORY" "$BACKUP_ENCRYPT"
    store_values
    printf '# end\n'
  } | put 600 "$ROOT/etc/kube-ha/etcd/backup.values"
  put 644 "${units[0]}" <<<"[Unit]
Description=Backup of etcd, where the leader is
After=etcd.service

[Service]
Type=oneshot
ExecStart=/bin/bash /usr/local/lib/kube-ha/run.sh snapshot
StandardInput=file:/etc/kube-ha/etcd/backup.values
TimeoutStartSec=30min
Nice=10
IOSchedulingClass=idle"
  # At the same second everywhere: each asks then who leads, and one of them does.
  put 644 "${units[1]}" <<<"[Unit]
Description=Backup of etcd, every $BACKUP_EVERY_H h

[Timer]
OnCalendar=*-*-* $at:00:00 UTC
AccuracySec=1s

[Install]
WantedBy=timers.target"
  settle restart kube-ha-backup.timer "${units[@]}"
}

store_values() {
  local name
  if [[ -z ${BACKUP_STORE:-} ]]; then return; fi
  for name in BACKUP_{STORE,REGION,ACCESS_KEY,CA,PRUNE,PROXY}; do printf '%s=%q\n' "$name" "${!name:-}"; done
  if [[ -n ${BACKUP_IDENTITY:-} ]]; then printf 'BACKUP_IDENTITY=%q\n' "$BACKUP_IDENTITY"; fi
}
# The secret of a key that is no longer used stays nowhere.
forget_store() {
  if [[ -z ${BACKUP_STORE:-} ]]; then
    rm -f "$STATE"/backup.{sent,unsent}
    forget_files "no more backups to an object store" "$PKI/store.key" "$PKI/store-ca.crt"
  elif [[ -n ${BACKUP_IDENTITY:-} ]]; then
    forget_files "the object store knows this machine without a key" "$PKI/store.key"
  fi
}
forget_files() { # forget_files WHY FILE...
  local why=$1 file gone=0
  shift
  for file in "$@"; do
    if [[ ! -e $file ]]; then continue; fi
    rm -f "$file"
    forget_keys "$file"
    gone=1
  done
  if ((gone)); then
    changes=$((changes + 1))
    log "$why"
  fi
}

become_member() { # become_member FILE...: what etcd restarts for
  set_aside_foreign
  if etcd_has_data && ! is_settled etcd.service "$(sha256sum -- "$@")"; then before_restart; fi
  join_or_found
  start_etcd "$@"
  # Where it did not run, only now it tells what it is of.
  set_aside_foreign
  if ! etcd_has_data; then
    join_or_found
    start_etcd "$@"
  fi
  promote
  wait_for 90 "etcd member at 127.0.0.1:2379 answering with a quorum" answers 127.0.0.1
  end_nospace 127.0.0.1
  tell_alarms 127.0.0.1
  prove_cluster
  rm -f "$BOOTSTRAP_ENV" # etcd does not read it once it has data, and those that it names may leave
}

main() {
  await_resumed
  own
  renew_admin
  refuse_older_etcd
  binaries
  etcd_account
  guard
  install -d -m 700 "$DATA"
  become_member "$PKI/etcd.env" "$ROOT/etc/systemd/system/etcd.service" "$PKI/ca.crt" "$STATE/etcd.artefact"
  watch_etcd
  recall_api_server
  bring_back
  backups
  finish
}
