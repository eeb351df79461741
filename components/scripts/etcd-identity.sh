# shellcheck shell=bash
# Which cluster an etcd is of: asked wherever a member is counted, joined, restarted beside or handed something, for an
# etcd that answers may be another one: one whose data was lost, or was there before a restore. Only definitions; what
# sources it has etcdctl_at, and MEMBERS (words "name=address", all wanted members). Three things tell: the cluster ID,
# which etcd itself has and never changes; the epoch, a number that each restore raises (a key in etcd; 1 where there is
# none); the mark of this stack's cluster (a key too, which an empty cluster has not). The machine has written down of
# which cluster its member is, once that was proved.
EPOCH_KEY=/kube-ha/epoch
MARK_KEY=/kube-ha/cluster
CLUSTER_RECORD=$STATE/etcd.cluster # "ID EPOCH"; ID is - while a restore is under way

cluster_recorded() { # "ID EPOCH"; "- 0" where nothing was proved yet
  local id="" epoch=""
  if [[ -f $CLUSTER_RECORD ]]; then read -r id epoch <"$CLUSTER_RECORD" || true; fi
  if [[ ! $id =~ ^([0-9]{1,20}|-)$ || ! $epoch =~ ^[0-9]{1,12}$ ]]; then id=- epoch=0; fi
  printf '%s %s\n' "$id" "$epoch"
}
record_cluster() { # record_cluster ID EPOCH: before an etcd is started that would not fit what stands there
  put 600 "$CLUSTER_RECORD" <<<"$1 $2"
  sync "$CLUSTER_RECORD" "${CLUSTER_RECORD%/*}"
}

# identity_at ADDRESS: "ID EPOCH MARK" as the data of that member says, with a quorum behind it or not; MARK is ours,
# none or other. Nothing where it does not answer.
identity_at() {
  local answer
  answer=$(etcdctl_at "$1:2379" --command-timeout 3s --dial-timeout 2s get /kube-ha/ --prefix --consistency s \
    -w fields 2>/dev/null) || return 0
  awk -F' : ' -v epoch_key="\"$EPOCH_KEY\"" -v mark_key="\"$MARK_KEY\"" \
    -v ours="\"kube-ha-cluster:$CLUSTER:$CLUSTER_ID;\"" '
    $1 == "\"ClusterID\"" && $2 ~ /^[0-9]+$/ && id == "" {id = $2}
    $1 == "\"Key\"" {key = $2}
    $1 == "\"Value\"" && key == epoch_key {gsub(/"/, "", $2); if ($2 ~ /^[0-9]+$/ && length($2) < 13) epoch = $2}
    $1 == "\"Value\"" && key == mark_key {mark = ($2 == ours ? "ours" : "other")}
    END {if (id != "") print id, (epoch == "" ? 1 : epoch), (mark == "" ? "none" : mark)}' <<<"$answer"
}

# identities [ADDRESS]: lines "address ID EPOCH MARK" of the wanted members that answer, but for ADDRESS; asked side by
# side.
identities() {
  local member address
  for member in $MEMBERS; do
    address=${member#*=}
    if [[ $address == "${1:-}" ]]; then continue; fi
    identity_at "$address" | sed "s/^/$address /" &
  done
  wait
}

# our_cluster ROWS (lines of identities): "ID EPOCH" of the one that is ours: that of the highest epoch; where several
# have it the one that this machine wrote down, else the only one that bears the mark, else that of most members.
# Nothing where that cannot be told, or is older than what was written down.
our_cluster() {
  local id epoch
  read -r id epoch < <(cluster_recorded)
  # Numbers of 64 bits are texts to awk; the letter keeps them so.
  awk -v known="c$id" -v epoch="$epoch" '
    NF != 4 || $4 == "other" {next}
    {
      key = "c" $2
      members[key]++
      if ($3 + 0 > at[key] + 0) at[key] = $3
      if ($3 + 0 > top + 0) top = $3
      if ($4 == "ours") marked[key] = 1
    }
    END {
      if (top == "" || top + 0 < epoch + 0) exit
      for (key in members) {
        if (at[key] != top) continue
        if (marked[key]) {marks++; bearer = key}
        if (members[key] > most) {most = members[key]; best = key; tied = 0} else if (members[key] == most) tied = 1
      }
      if (at[known] == top) best = known
      else if (marks == 1) best = bearer
      else if (tied) exit
      print substr(best, 2), top
    }' <<<"$1"
}

# same_cluster ID ADDRESS: the etcd there is a member of that very cluster, and answers with a quorum behind it,
# whatever alarms there are.
same_cluster() {
  local answer
  answer=$(etcdctl_at "$2:2379" --command-timeout 5s get "$MARK_KEY" --keys-only -w fields 2>/dev/null) || return 1
  [[ $(awk -F' : ' '$1 == "\"ClusterID\"" && !seen++ {print $2}' <<<"$answer") == "$1" ]]
}

# The members that answer, in words for people: of which cluster each is.
told_clusters() { # told_clusters ROWS
  local member address id epoch mark out=""
  for member in $MEMBERS; do
    while read -r address id epoch mark; do
      if [[ $address != "${member#*=}" ]]; then continue; fi
      out+="${out:+, }${member%%=*} is of cluster $(printf %x "$id") (epoch $epoch"
      if [[ $mark == none ]]; then out+=", without this cluster's mark"; fi
      if [[ $mark == other ]]; then out+=", with the mark of another stack"; fi
      out+=")"
    done <<<"$1"
  done
  printf '%s\n' "${out:-none answers}"
}
