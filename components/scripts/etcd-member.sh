# shellcheck shell=bash
# Makes this machine a healthy, voting member of the cluster's etcd. A machine with data starts as the member it is; one without joins
# the members that answer, as a learner, and is promoted when it has caught up; only the bootstrap member of a cluster that never was may found one.
# Values: ADDRESS, MEMBERS (words "name=address", all wanted members), BOOTSTRAP (1: may found the cluster), ARTEFACTS, ARCH_DIR (folder in
#   the tarball), ETCD_ENV, ETCD_UNIT; BACKUP_EVERY_H (hours between backups; 0: no timer), and what snapshot.sh takes (BACKUP_KEEP, BACKUP_DIRECTORY,
#   BACKUP_ENCRYPT, and where there is an object store the values of that). Owns: units etcd and kube-ha-backup, /etc/kube-ha/etcd/*.env, /var/lib/kube-ha/etcd.
DATA=$HOME_DIR/etcd
PEER_URL=https://$ADDRESS:2380
BOOTSTRAP_ENV=/etc/kube-ha/etcd/bootstrap.env

# shellcheck source=etcd-client.sh disable=SC2154 # run.sh says where
source "$here/etcd-client.sh"
# shellcheck source=aside.sh disable=SC2154
source "$here/aside.sh"

binaries() {
  local url sum
  read -r url sum < <(awk '$1 == "etcd" {print $2, $3}' <<<"$ARTEFACTS")
  install_archive etcd "$url" "$sum" /usr/local/bin 1 "$ARCH_DIR/etcd" "$ARCH_DIR/etcdctl" "$ARCH_DIR/etcdutl"
}

# etcd tells which minor version all members have reached: the data is of that version, and no older member can take part.
refuse_older_etcd() {
  local is member wanted=${ARCH_DIR#etcd-v}
  wanted=${wanted%%-*}
  for member in here=127.0.0.1 $MEMBERS; do
    is=$(cluster_version "${member#*=}")
    if [[ -n $is ]]; then break; fi
  done
  if [[ -z $is ]] || (($(minor_of "$wanted") >= $(minor_of "$is"))); then return; fi
  die "all etcd members have reached ${is%.*}, and its data is nothing for $wanted" "set cluster.etcd to a version of ${is%.*} and run pulumi up; to go back, restore a snapshot of etcd from before the change"
}
cluster_version() { # cluster_version ADDRESS: empty where nothing answers, or nothing is decided yet
  local answer
  answer=$(curl -fsS --max-time 3 --noproxy '*' --cacert /etc/kube-ha/etcd/ca.crt --cert /etc/kube-ha/etcd/client.crt --key /etc/kube-ha/etcd/client.key "https://$1:2379/version" 2>/dev/null) || return 0
  if [[ $answer =~ \"etcdcluster\":\"([0-9.]+)\" ]]; then printf '%s\n' "${BASH_REMATCH[1]}"; fi
}

# The first other member that knows the cluster with a quorum behind it (a member list is a linearizable read).
find_cluster() {
  local member address
  for member in $MEMBERS; do
    address=${member#*=}
    # The port first: where nothing listens, etcdctl would try for its whole time.
    if [[ $address != "$ADDRESS" ]] && open_port "$address" 2379 && etcdctl_at "$address" member list >/dev/null 2>&1; then
      printf '%s\n' "$address"
      return
    fi
  done
}

# Founding is allowed only when every other machine says itself that no etcd runs there; node.sh has started any that has data.
refuse_second_cluster() {
  local member address answer
  [[ $BOOTSTRAP == 1 ]] || die "no etcd member with a quorum answers (asked: $MEMBERS), and this machine has no data" "if the other members are down, start them; if all data is lost, restore a snapshot: a new, empty cluster is never made in place of one that was"
  for member in $MEMBERS; do
    address=${member#*=}
    if [[ $address == "$ADDRESS" ]]; then continue; fi
    if answer=$(timeout 5 bash -c "</dev/tcp/$address/2380" 2>&1); then
      die "etcd on $member runs, but without a quorum, and this machine has no data" "bring the members with data back first (journalctl -u etcd on ${member%%=*})"
    fi
    [[ $answer == *"Connection refused"* ]] || die "cannot tell whether etcd on $member has data: ${answer:-no answer in 5 s}" "see that the machine runs and that port 2380 is open between etcd machines"
  done
}

found_cluster() {
  refuse_second_cluster
  put 644 "$BOOTSTRAP_ENV" <<<"ETCD_INITIAL_CLUSTER=$NODE=$PEER_URL
ETCD_INITIAL_CLUSTER_STATE=new"
  log "founding the etcd cluster"
}

own_row() { awk -F', ' -v url="$PEER_URL" '$4 == url'; }

add_learner() { # add_learner ADDRESS-OF-A-MEMBER
  local row rows
  rows=$(members_at "$1")
  drop_forgotten_learners "$1" "$rows"
  row=$(own_row <<<"$rows")
  if [[ -n $row ]] && ! added_here "$row"; then
    # This address had a member once, and its data is gone. Started, it would count as a voter that never answers; not started yet, it may have
    # begun a log, which etcd cannot begin again.
    log "removing the lost incarnation of this member"
    wait_for 60 "old member ${row%%,*} removed" etcdctl_at "$1" member remove "${row%%,*}"
    row=""
  fi
  if [[ -z $row ]]; then
    # etcd refuses for some seconds after another change of membership ("unhealthy cluster").
    wait_for 120 "member added as learner" etcdctl_at "$1" member add "$NODE" --learner --peer-urls "$PEER_URL"
  fi
  rows=$(members_at "$1")
  # Names of members that have not started are empty; etcd matches by URL, the name only has to be unique.
  put 644 "$BOOTSTRAP_ENV" <<<"ETCD_INITIAL_CLUSTER=$(awk -F', ' -v me="$NODE" -v url="$PEER_URL" '{n = $3; if ($4 == url) n = me; else if (n == "") n = $1; printf "%s%s=%s", s, n, $4; s = ","}' <<<"$rows")
ETCD_INITIAL_CLUSTER_STATE=existing"
}

added_here() { [[ $1 == *", unstarted, "* ]] && grep -qs STATE=existing "$BOOTSTRAP_ENV"; } # added_here ROW: by this machine, as it is now

# etcd takes one learner at a time: one whose machine was given up while it joined would keep out all others.
drop_forgotten_learners() { # drop_forgotten_learners ADDRESS-OF-A-MEMBER ROWS
  local member wanted=" " id name
  for member in $MEMBERS; do wanted+="https://${member#*=}:2380 "; done
  while read -r id name; do
    if [[ -z $id ]]; then continue; fi
    log "removing learner $name, which is not wanted any more"
    wait_for 60 "learner $name removed" etcdctl_at "$1" member remove "$id"
  done < <(awk -F', ' -v wanted="$wanted" '$6 == "true" && !index(wanted, " " $4 " ") {print $1, $4}' <<<"$2")
}

# A member that was removed while it was away, and is wanted again, joins anew. Its own word does not count: it may run on for a while.
set_aside_if_removed() {
  local peer rows
  if ! etcd_has_data; then return; fi
  # A quorum stands behind a list; who was removed gets none.
  if rows=$(members_at 127.0.0.1 2>/dev/null) && [[ -n $(own_row <<<"$rows") ]]; then return; fi
  peer=$(find_cluster)
  if [[ -z $peer ]]; then return; fi
  rows=$(members_at "$peer")
  if [[ -n $(own_row <<<"$rows") ]]; then return; fi
  log "this member was removed from its cluster: its data goes to $DATA.removed, and it joins anew"
  systemctl stop etcd
  rm -f "$BOOTSTRAP_ENV"
  set_aside_etcd
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

# A planned restart: the others have a quorum without this member, the API server beside it, which asks it alone, is out of service, and no
# election is needed.
before_restart() {
  local heir
  heir=$(etcd_heir)
  if [[ -z $heir ]]; then return; fi
  if [[ -f $MANIFESTS/kube-apiserver.yaml ]] && others_serve; then
    log "its API server drains first"
    drain_api_server
  fi
  hand_over_etcd "$heir"
}

# What etcd-stopped.sh has put away, when this member had been removed.
recall_api_server() {
  if [[ ! -d $ASIDE.removed ]]; then return; fi
  install -d -m 700 "$ASIDE"
  cp -n "$ASIDE.removed"/*.yaml "$ASIDE/"
  rm -rf "$ASIDE.removed"
}

# The timer of backups runs on every member, and the leader's does the work (snapshot.sh). Nothing about it restarts etcd.
backups() {
  if [[ -z ${BACKUP_EVERY_H:-} ]]; then return; fi # the founding run does not know it, the one after it does
  local units=("$ROOT/etc/systemd/system/kube-ha-backup.service" "$ROOT/etc/systemd/system/kube-ha-backup.timer") at="00/$BACKUP_EVERY_H"
  if [[ $BACKUP_EVERY_H == 24 ]]; then at=00; fi
  if [[ -z ${BACKUP_STORE:-} ]]; then forget_store; fi
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
    printf 'NODE=%q\nCLUSTER=%q\nCLUSTER_ID=%q\nCONTAINER=%q\nINCARNATION=%q\nSCRIPT_SUM=kept\nREASON=schedule\nADDRESS=%q\nMEMBERS=%q\nBACKUP_KEEP=%q\nBACKUP_DIRECTORY=%q\nBACKUP_ENCRYPT=%q\n' \
      "$NODE" "$CLUSTER" "$CLUSTER_ID" "$CONTAINER" "${INCARNATION:-1}" "$ADDRESS" "$MEMBERS" "$BACKUP_KEEP" "$BACKUP_DIRECTORY" "$BACKUP_ENCRYPT"
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
}
# The secret of a store that is no longer used stays nowhere.
forget_store() {
  rm -f "$STATE"/backup.{sent,unsent}
  if [[ ! -e $PKI/store.key ]]; then return; fi
  rm -f "$PKI"/store.key "$PKI"/store-ca.crt
  forget_keys "$PKI/store"
  changes=$((changes + 1))
  log "no more backups to an object store"
}

main() {
  local peer files=(/etc/kube-ha/etcd/etcd.env /etc/systemd/system/etcd.service /etc/kube-ha/etcd/ca.crt "$STATE/etcd.artefact")
  await_resumed
  own
  refuse_older_etcd
  binaries
  put 600 /etc/kube-ha/etcd/etcd.env <<<"$ETCD_ENV"
  put 644 /etc/systemd/system/etcd.service <<<"$ETCD_UNIT"
  install -d -m 700 "$DATA"
  set_aside_if_removed
  if ! etcd_has_data; then
    rm -rf "$DATA/member" # folders of a start that never joined
    peer=$(find_cluster)
    if [[ -n $peer ]]; then add_learner "$peer"; else found_cluster; fi
  elif ! settled etcd.service "$(sha256sum -- "${files[@]}")"; then
    before_restart
  fi
  settle restart etcd.service "${files[@]}"
  wait_for 90 "etcd answering on https://127.0.0.1:2379" etcdctl_at 127.0.0.1 endpoint status
  promote
  wait_for 90 "healthy etcd member at 127.0.0.1:2379" etcdctl_at 127.0.0.1 endpoint health
  rm -f "$BOOTSTRAP_ENV" # etcd does not read it once it has data, and those that it names may leave
  recall_api_server
  bring_back
  backups
  finish
}
