# shellcheck shell=bash
# Gives back to the disk what is free inside etcd's databases: one member after the other, those that follow first, the
# leader last, when it has handed over. A member stands still while it rewrites its database, and the API server beside
# it with it. Then an alarm NOSPACE is ended, where there is room. Runs on one machine of etcd, for `make defrag`; it
# travels by itself. Interrupted, the next run does what is left.
# Variables: ADDRESS, MEMBERS (words "name=address").
# shellcheck disable=SC2034 # read by die
HINT="fix that, then run make defrag again: it continues with what is left"
AT_LEAST=10 # percent of a database that have to be free before it is worth standing still, and more than a MiB

# shellcheck source=etcdctl.sh disable=SC2154 # here: the folder of run.sh
source "$here/etcdctl.sh"
# shellcheck source=etcd-client.sh disable=SC2154 # run.sh says where
source "$here/etcd-client.sh"

status_at() { etcdctl_at "$1" endpoint status -w fields 2>/dev/null; }
mib() { printf '%d MiB\n' $(($1 / 1024 ** 2)); }
sizes_of() { # sizes_of ADDRESS: size and what of it is used
  local status
  status=$(status_at "$1") || return 1
  printf '%s, %s of it used\n' "$(mib "$(field DBSize <<<"$status")")" "$(mib "$(field DBSizeInUse <<<"$status")")"
}
name_of() { # name_of ADDRESS
  local member
  for member in $MEMBERS; do
    if [[ ${member#*=} == "$1" ]]; then printf '%s\n' "${member%%=*}"; fi
  done
}

# Addresses of all members, of any name and with or without a vote, by a list with a quorum behind it.
addresses() {
  etcdctl_at "$ADDRESS" member list -w simple |
    awk -F', ' '$2 == "started" {split($4, part, /\/\/|:2380/); print part[2]}'
}

# A cluster of this one's id, with a quorum that the member is part of.
is_sound() { # is_sound ADDRESS
  local own is
  answers "$1" >/dev/null 2>&1 || return 1
  own=$(status_at "$ADDRESS" | field ClusterID) || return 1
  is=$(status_at "$1" | field ClusterID) || return 1
  [[ -n $own && $own == "$is" ]]
}

is_leader() { # is_leader ADDRESS
  local status
  status=$(status_at "$1") || return 1
  [[ $(field MemberID <<<"$status") == "$(field Leader <<<"$status")" ]]
}

# The API servers forget old revisions every 5 minutes, and note that in etcd: where it takes no writes they forget
# none. All members do it in parallel, and only the one that is asked tells when it is through: the others get a moment
# more. One that lags gives back less, and the rest the next time.
forget_old_revisions() {
  local revision
  revision=$(etcdctl_at "$ADDRESS" get "$IDENTITY_KEY" -w fields | field Revision)
  if etcdctl_long "$ADDRESS" compact "$revision" --physical >/dev/null 2>&1; then # else they had
    log "old revisions are forgotten, up to $revision"
    sleep 3
  fi
}
etcdctl_long() { # etcdctl_long ADDRESS ARGUMENT...: a database of 8 GiB takes its time
  LONG_S=1200 etcdctl_at "$1" --command-timeout 1190s "${@:2}"
}

is_worth_it() { # is_worth_it ADDRESS
  local status size free
  status=$(status_at "$1") || return 1
  size=$(field DBSize <<<"$status")
  free=$((size - $(field DBSizeInUse <<<"$status")))
  ((free > 1024 ** 2 && free * 100 >= size * AT_LEAST))
}

# Clients of a leader that stands still wait all over the cluster.
hand_over() { # hand_over ADDRESS: to any other that is sound
  local successor id
  for successor in $(addresses); do
    if [[ $successor == "$1" ]] || ! is_sound "$successor"; then continue; fi
    # bash converts the id: it has 64 bits, awk's numbers have fewer.
    id=$(status_at "$successor" | field MemberID)
    if etcdctl_at "$1" move-leader "$(printf %x "$id")" >/dev/null 2>&1; then
      wait_for 30 "etcd led by $successor" is_leader "$successor"
      log "$(name_of "$successor") ($successor) leads now"
      return
    fi
  done
  log "nobody can take over from $1: etcd stands still while its database is rewritten"
}

defragment() { # defragment ADDRESS
  local before answer
  before=$(sizes_of "$1") || die "etcd at $1 does not tell its size any more"
  answer=$(etcdctl_long "$1" defrag 2>&1) ||
    die "the database of $1 cannot be rewritten: $(tail -n 1 <<<"$answer" | cut -c1-300)" \
      "see that its disk has room for a second copy of it (journalctl -u etcd there), then run make defrag again"
  wait_for 120 "etcd at $1 answering again, in the same cluster" is_sound "$1"
  changes=$((changes + 1))
  log "$(name_of "$1") ($1): $before; now $(sizes_of "$1")"
}

main() {
  local address last="" silent="" alarms
  own
  is_sound "$ADDRESS" ||
    die "etcd does not answer here with a quorum" "make status shows which members run; another machine may do"
  printf 'begun\n' # no other machine is asked from here on
  alarms=$(alarms_at "$ADDRESS") || die "etcd does not tell its alarms"
  tell_alarms "$ADDRESS"
  [[ $alarms != *CORRUPT* ]] ||
    die "a member is corrupt (above): nothing is rewritten before that is fixed" \
      "raise its generation and run pulumi up"
  if [[ $alarms == *NOSPACE* ]]; then forget_old_revisions; fi
  for address in $(addresses); do
    if ! is_sound "$address"; then
      silent+="${silent:+, }$address"
    # without writes etcd does not count all that is free
    elif [[ $alarms != *NOSPACE* ]] && ! is_worth_it "$address"; then
      log "$(name_of "$address") ($address): $(sizes_of "$address"), nothing to give back"
    elif is_leader "$address"; then
      last+=" $address" # leadership may move meanwhile
    else
      defragment "$address"
    fi
  done
  for address in $last; do
    if is_leader "$address"; then hand_over "$address"; fi
    defragment "$address"
  done
  end_nospace "$ADDRESS"
  tell_alarms "$ADDRESS"
  [[ -z $silent ]] ||
    die "no answer of $silent, so what is there was left as it is" \
      "bring it back, or take it out of the config, then run make defrag again; it may raise the alarm until then"
  finish
}
