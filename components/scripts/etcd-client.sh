# shellcheck shell=bash
# How a machine of etcd asks the members, and whether a snapshot is whole: what etcd-member.sh, snapshot.sh and
# restore.sh share. Only definitions; they source it.
# shellcheck disable=SC2034 # read by etcdctl_at and those who source this
PKI=$ROOT/etc/kube-ha/etcd
# In every cluster of kube-ha, outside of what Kubernetes reads: a snapshot tells by it whose it is.
IDENTITY_KEY=/kube-ha/cluster

# etcd runs under an account of its own; its data, and the keys that it serves with, are that account's. One that is
# there already is taken.
etcd_account() {
  if getent passwd etcd >/dev/null; then return; fi
  if ! getent group etcd >/dev/null; then groupadd --system etcd; fi
  useradd --system --gid etcd --no-create-home --home-dir / --shell /usr/sbin/nologin etcd
  put 644 "$STATE/etcd.account" <<<"made by kube-ha" # a wipe takes it away again
}

# field NAME: the first one of that name in what etcdctl says with `-w fields`.
field() { awk -F' : ' -v key="\"$1\"" '$1 == key && !seen++ {gsub(/"/, "", $2); print $2}'; }

# answers ADDRESS[:PORT]: this very member has data to give with a quorum behind it (a linearizable read). `endpoint
# health` would say no of every member as soon as one has an alarm, and an alarm must stand in the way of nothing that
# could end it: alarms are told apart from this.
answers() { etcdctl_at "$1" get "$IDENTITY_KEY" --keys-only; }

# alarms_at ADDRESS: what is wrong with the store, a line each: "NOSPACE master-1".
alarms_at() {
  local said rows id word name
  said=$(etcdctl_at "$1" alarm list 2>/dev/null) || return 1
  rows=$(etcdctl_at "$1" member list -w simple 2>/dev/null) || return 1
  while IFS=' ' read -r id word; do
    if [[ ! $id =~ ^memberID:([0-9]+)$ ]]; then continue; fi
    # bash converts the id: it has 64 bits, awk's numbers have fewer.
    id=$(printf %x "${BASH_REMATCH[1]}")
    name=$(awk -F', ' -v id="$id" '$1 == id && $3 {print $3}' <<<"$rows")
    printf '%s %s\n' "${word#alarm:}" "${name:-$id}"
  done <<<"$said"
}
# Each alarm by its name, with what it means and the fix; where there is none, or nobody tells, nothing is said.
tell_alarms() { # tell_alarms ADDRESS
  local alarm who
  while read -r alarm who; do
    case $alarm in
      "") ;;
      NOSPACE) log "etcd alarm NOSPACE of $who: its database has reached its quota, so nothing but deletes is" \
        "written; make defrag gives back what is free inside, then raise etcd.quotaBackendGib" ;;
      CORRUPT) log "etcd alarm CORRUPT of $who: its data is not that of the others; raise nodes.$who.generation and" \
        "run pulumi up, which recreates that member" ;;
      *) log "etcd alarm $alarm of $who" ;;
    esac
  done < <(alarms_at "$1" || true) # who does not answer has no alarm to tell
}

# NOSPACE stands until somebody ends it, also where room was made or a quota raised. It is ended when every member that
# answers has room again: the first write to one that has none would raise it again.
end_nospace() { # end_nospace ADDRESS
  local alarms address status size quota
  alarms=$(alarms_at "$1") || return 0
  if [[ $alarms != *NOSPACE* ]]; then return 0; fi
  # etcdctl ends all alarms or none, and this one is no matter of space.
  if [[ $alarms == *CORRUPT* ]]; then return 0; fi
  for address in $(etcdctl_at "$1" member list -w simple |
    awk -F', ' '$2 == "started" {split($4, part, /\/\/|:2380/); print part[2]}'); do
    status=$(etcdctl_at "$address" endpoint status -w fields 2>/dev/null) || continue
    size=$(field DBSize <<<"$status") quota=$(field DBSizeQuota <<<"$status")
    if [[ -n $quota ]] && ((quota > 0 && size * 10 >= quota * 9)); then
      log "alarm NOSPACE stays: the database of $address is $((size / 1024 ** 2)) MiB, of $((quota / 1024 ** 2)) MiB" \
        "that it may have"
      return 0
    fi
  done
  etcdctl_at "$1" alarm disarm >/dev/null
  changes=$((changes + 1))
  log "etcd has room again: alarm NOSPACE is ended, and takes writes"
}

# etcd ends a snapshot with the SHA-256 of what comes before. `snapshot status` does not look at it: a file that was cut
# off may well pass there.
is_whole() { # is_whole FILE
  local is said
  is=$(head -c -32 "$1" | sha256sum)
  said=$(tail -c 32 "$1" | od -An -tx1 | tr -d ' \n')
  [[ -n $said && ${is%% *} == "$said" ]]
}
