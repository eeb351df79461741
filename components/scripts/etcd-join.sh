# shellcheck shell=bash
# How a machine without data comes to be a member: it joins the cluster that is ours as a learner, or bootstraps one
# that never was; and how data that is not that cluster's goes aside. Only definitions; etcd-member.sh sources it.

# find_cluster ROWS ID (lines of identities): the first other member of that cluster with a quorum behind it; asked
# three times, for they may just elect. Which cluster is joined is never a matter of who answers first.
find_cluster() {
  local address id
  for _ in 1 2 3; do
    while read -r address id _; do
      if [[ $address != "$ADDRESS" && $id == "$2" ]] && same_cluster "$2" "$address"; then
        printf '%s\n' "$address"
        return
      fi
    done <<<"$1"
  done
}

# Founding is allowed only when every other machine says itself that no etcd runs there; node.sh has started any that
# has data.
refuse_second_cluster() {
  local member address answer id
  read -r id _ < <(cluster_recorded)
  [[ $id == - ]] ||
    die "this machine's member was of etcd cluster $(printf %x "$id"), and its data is gone" \
      "see that its disk is there; if all data is lost, restore a snapshot: a new, empty cluster is never made in" \
      "place of one that was"
  # What was written down on the first day bootstraps nothing on a later one, whatever makes it run again.
  if (($(date +%s) >= ${BOOTSTRAP_UNTIL:-0} && ${BOOTSTRAP_UNTIL:-0} > 0)); then BOOTSTRAP=0; fi
  [[ $BOOTSTRAP == 1 ]] ||
    die "no etcd member with a quorum answers (asked: $MEMBERS), and this machine has no data" \
      "if the other members are down, start them; if all data is lost, restore a snapshot: a new, empty cluster is" \
      "never made in place of one that was"
  for member in $MEMBERS; do
    address=${member#*=}
    if [[ $address == "$ADDRESS" ]]; then continue; fi
    if answer=$(timeout 5 bash -c "</dev/tcp/$address/2380" 2>&1); then
      die "etcd on $member runs, but without a quorum, and this machine has no data" \
        "bring the members with data back first (journalctl -u etcd on ${member%%=*})"
    fi
    [[ $answer == *"Connection refused"* ]] ||
      die "cannot tell whether etcd on $member has data: ${answer:-no answer in 5 s}" \
        "see that the machine runs and that port 2380 is open between etcd machines"
  done
}

# The token is one of its own: founded twice, these are two clusters, and can be told apart.
found_cluster() {
  refuse_second_cluster
  bootstrap "$NODE=$PEER_URL" new "$CLUSTER-$CLUSTER_ID-$(date +%s%N)"
  log "bootstrapping the etcd cluster"
}
bootstrap() { # bootstrap INITIAL-CLUSTER STATE TOKEN: whole and on the disk before anything relies on it
  put 644 "$BOOTSTRAP_ENV" <<<"ETCD_INITIAL_CLUSTER=$1
ETCD_INITIAL_CLUSTER_STATE=$2
ETCD_INITIAL_CLUSTER_TOKEN=$3"
  sync "$BOOTSTRAP_ENV" "${BOOTSTRAP_ENV%/*}"
}

own_row() { awk -F', ' -v url="$PEER_URL" '$4 == url'; }

add_learner() { # add_learner ADDRESS-OF-A-MEMBER
  local row rows
  rows=$(members_at "$1")
  drop_forgotten_learners "$1" "$rows"
  row=$(own_row <<<"$rows")
  if [[ -n $row ]] && ! added_here "$row"; then
    # This address had a member once, and its data is gone. Started, it would count as a voter that never answers; not
    # started yet, it may have begun a log, which etcd cannot begin again.
    log "removing the lost incarnation of this member"
    wait_for 60 "old member ${row%%,*} removed" etcdctl_at "$1" member remove "${row%%,*}"
    row=""
  fi
  if [[ -z $row ]]; then
    # Before it is added: an answer that is lost, or a power cut, leaves an entry that this machine knows to be its own.
    expect_to_join "$rows"
    # etcd refuses for some seconds after another change of membership ("unhealthy cluster").
    wait_for 120 "member added as learner" added "$1"
  fi
  rows=$(members_at "$1")
  expect_to_join "$rows"
}
added() { # added ADDRESS-OF-A-MEMBER: the answer to an earlier try may have got lost
  local rows
  rows=$(members_at "$1") || return 1
  if [[ -n $(own_row <<<"$rows") ]]; then return; fi
  etcdctl_at "$1" member add "$NODE" --learner --peer-urls "$PEER_URL"
}
# Names of members that have not started are empty; etcd matches by URL, the name only has to be unique.
expect_to_join() { # expect_to_join ROWS
  local members
  members=$(awk -F', ' -v me="$NODE" -v url="$PEER_URL" \
    '{n = $3; if ($4 == url) {n = me; seen = 1} else if (n == "") n = $1; printf "%s%s=%s", s, n, $4; s = ","}
    END {if (!seen) printf "%s%s=%s", s, me, url}' <<<"$1")
  bootstrap "$members" existing "$CLUSTER-$CLUSTER_ID"
}

# added_here ROW: by this machine, as it is now
added_here() { [[ $1 == *", unstarted, "* ]] && grep -qs STATE=existing "$BOOTSTRAP_ENV"; }

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

# Why the data here is not to be used, in words; nothing where it is, or where ours cannot be joined just now. What the
# etcd here says of itself does not count: it may run on for a while, or be a cluster of its own.
foreign() {
  local rows ours epoch is is_epoch peer listed
  rows=$(identities)
  read -r ours epoch < <(our_cluster "$rows") || return 0
  read -r is is_epoch < <(own_identity "$rows")
  peer=$(find_cluster "$rows" "$ours")
  if [[ -z $peer ]]; then return; fi
  # Of what was refused before, by the guard or by a run that was cut off here, the etcd tells nothing any more.
  if refused foreign || refused older; then
    echo "was refused by its guard"
    return
  fi
  if [[ $is != - && $is != "$ours" ]]; then
    printf 'is of cluster %x (epoch %s), and the cluster is %x (epoch %s)\n' "$is" "$is_epoch" "$ours" "$epoch"
    return
  fi
  listed=$(members_at "$peer")
  if [[ -z $(own_row <<<"$listed") ]]; then echo "was removed from its cluster"; fi
}
own_identity() { # own_identity ROWS: what the etcd here is of by itself, else what was written down
  awk -v address="$ADDRESS" '$1 == address {print $2, $3; found = 1} END {exit !found}' <<<"$1" || cluster_recorded
}

# Data of another cluster or of an older epoch, and that of a member which was removed while it was unavailable: it goes
# aside, and the machine joins again. Cut off at any point it has data that the guard refuses, or none, and then the
# unit does not start by itself.
set_aside_foreign() {
  local why
  if ! etcd_has_data; then return; fi
  why=$(foreign)
  if [[ -z $why ]]; then return; fi
  log "this member $why: its data goes to $DATA.removed, and it joins again"
  refuse foreign "this member $why" >/dev/null # etcd-stopped.sh ends the API server by that
  systemctl stop etcd
  rm -f "$BOOTSTRAP_ENV"
  sync "${BOOTSTRAP_ENV%/*}"
  set_aside_etcd
  sync -f "$DATA"
}

join_or_found() {
  local rows ours epoch peer=""
  if etcd_has_data; then return; fi
  rm -rf "$DATA/member" # folders of a start that never joined
  rows=$(identities "$ADDRESS")
  if read -r ours epoch < <(our_cluster "$rows"); then peer=$(find_cluster "$rows" "$ours"); fi
  if [[ -n $peer ]]; then
    add_learner "$peer"
    record_cluster "$ours" "$epoch"
  elif [[ -n $rows ]]; then
    die \
      "no etcd member of this cluster answers with a quorum, and this machine has no data: $(told_clusters "$rows")" \
      "bring the members with data back first; make status names what each of them is; if their data is lost, restore" \
      "a snapshot"
  else
    found_cluster
  fi
}
