#!/usr/bin/env bash
# Whether the etcd of this machine may serve. systemd asks before it starts (`before`, ExecStartPre), once it has
# started (`after`, ExecStartPost), and every 10 s while it runs (`running`, a timer). What is refused is in
# state/etcd.refused: "WHAT TIME INODE WORDS", where WHAT is
# empty     there is no data, and this machine has not been told to join: an etcd that starts like that would be a
# cluster of its own
# older     a member of a higher epoch was heard of: a restore has begun a new cluster, and this data is of the one
# before
# foreign   the data is of another cluster than the one that was proved here (INODE: which data; other data is looked at
# again) Of the last two etcd-stopped.sh ends the API server beside it. Phase etcd-member sets such data aside and joins
# again.
# An etcd that can ask nobody starts: that is how a cluster comes up of which all machines were off. Phase etcd-member
# sources this for what it says. From guard.values: NODE, ADDRESS, MEMBERS (words "name=address"), CLUSTER, CLUSTER_ID.

data_inode() { stat -c %i "$HOME_DIR/etcd/member" 2>/dev/null || printf '0\n'; }
has_log() { compgen -G "$HOME_DIR/etcd/member/wal/*.wal" >/dev/null; }
# written when it joins or bootstraps, gone once it is in
may_begin() { grep -qs '^ETCD_INITIAL_CLUSTER=.' "$PKI/bootstrap.env"; }

# refuse WHAT WORD...: the time is that of the first refusal for this reason.
refuse() {
  local file=$STATE/etcd.refused text="${*:2}"
  if ! refused "$1"; then
    printf '%s %s %s %s\n' "$1" "$(date +%s)" "$(data_inode)" "$text" >"$file.new"
    sync "$file.new"
    mv -f "$file.new" "$file"
  fi
  echo "etcd of $NODE may not serve: $text"
}
refused() { # refused WHAT: for that reason already, and the data is the same
  local what="" inode=""
  if [[ -f $STATE/etcd.refused ]]; then read -r what _ inode _ <"$STATE/etcd.refused" || true; fi
  [[ $what == "$1" && $inode == "$(data_inode)" ]]
}

# Of another cluster than the one that was proved here; the highest that was ever heard of, for who is newer may be off
# just now.
newest_epoch() {
  local own heard=0 id epoch mark
  read -r own _ < <(cluster_recorded)
  if [[ -f $STATE/etcd.newest ]]; then read -r heard <"$STATE/etcd.newest" || true; fi
  if ! [[ $heard =~ ^[0-9]{1,12}$ ]]; then heard=0; fi
  while read -r _ id epoch mark; do
    if ! [[ $epoch =~ ^[0-9]{1,12}$ ]] || [[ $mark == other || $id == "$own" ]] || ((10#$epoch <= 10#$heard)); then
      continue
    fi
    heard=$epoch
    printf '%s\n' "$heard" >"$STATE/etcd.newest.new"
    sync "$STATE/etcd.newest.new"
    mv -f "$STATE/etcd.newest.new" "$STATE/etcd.newest"
  done < <(identities "$ADDRESS")
  printf '%s\n' "$heard"
}

# of_older_epoch EPOCH: a restore has happened since; says so.
of_older_epoch() {
  local newest
  newest=$(newest_epoch)
  if ((10#$newest <= 10#$1)); then return 1; fi
  refuse older "its data is of epoch $1, and that of another member of epoch $newest: a restore has begun a new" \
    "cluster; pulumi up with converge.generation raised lets this machine join that"
}

may_start() {
  local epoch
  if ! has_log; then
    if may_begin; then
      rm -f "$STATE/etcd.refused"
      return
    fi
    refuse empty "there is no data in $HOME_DIR/etcd, and nothing says that it joins: if its disk is missing," \
      "mount it; if the data is lost, raise nodes.$NODE.generation or converge.generation, and run pulumi up"
    return 1
  fi
  if refused foreign; then
    refuse foreign "its data is of another cluster"
    return 1
  fi
  read -r _ epoch < <(cluster_recorded)
  # Versions before this one wrote nothing down: their clusters are of the first epoch.
  if ! [[ $epoch =~ ^[0-9]{1,12}$ ]] || ((10#$epoch == 0)); then epoch=1; fi
  if of_older_epoch "$epoch"; then return 1; fi
  rm -f "$STATE/etcd.refused"
}

# Its own cluster ID against the one that was proved. Before it has a quorum it tells nothing, and serves nobody.
fits() {
  local id is
  read -r id _ < <(cluster_recorded)
  is=$(identity_at "$ADDRESS")
  is=${is%% *}
  if [[ -z $is || $id == - || $is == "$id" ]]; then return; fi
  refuse foreign \
    "its data is of cluster $(printf %x \
      "$is"), and this machine's member is of $(printf %x \
        "$id"): pulumi up with converge.generation raised lets it join that"
  return 1
}

may_go_on() {
  local epoch
  if ! systemctl is-active -q etcd; then return; fi
  read -r _ epoch < <(cluster_recorded)
  if ! [[ $epoch =~ ^[0-9]{1,12}$ ]] || ((10#$epoch == 0)); then return; fi # its phase is not through yet
  if fits && ! of_older_epoch "$epoch"; then return; fi
  systemctl restart --no-block etcd # it ends; what is written down keeps it from starting, and ends the API server
}

if [[ ${BASH_SOURCE[0]:-} == "$0" ]]; then
  set -euo pipefail
  export LC_ALL=C PATH=/usr/local/sbin:/usr/local/bin:$PATH
  ROOT=${ROOT:-} HOME_DIR=${HOME_DIR:-${ROOT:-}/var/lib/kube-ha}
  STATE=$HOME_DIR/state
  folder=$(cd "$(dirname "$0")" && pwd)
  # shellcheck source=etcdctl.sh
  source "$folder/etcdctl.sh"
  # shellcheck source=etcd-client.sh
  source "$folder/etcd-client.sh"
  # shellcheck source=etcd-identity.sh
  source "$folder/etcd-identity.sh"
  # shellcheck source=/dev/null
  source "$PKI/guard.values"
  case $1 in
    before)
      again=$([[ ! -f $STATE/etcd.refused ]] || echo 1)
      if may_start; then exit; fi
      if [[ $again ]]; then sleep 8; fi # systemd asks forever
      exit 1
      ;;
    after) fits ;;
    running) may_go_on ;;
  esac
fi
