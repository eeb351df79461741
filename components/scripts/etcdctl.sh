# shellcheck shell=bash
# The one way to ask etcd, and what etcd has left on this machine. Only definitions; every phase that asks sources it.
# CLIENT_CA, CLIENT_CERT and CLIENT_KEY name the files of another client than this machine's member.

open_port() { timeout 3 bash -c "</dev/tcp/$1/$2" 2>/dev/null; }
# etcdctl_at ENDPOINTS ARGUMENT...: ask the members at ENDPOINTS, a comma list of ADDRESS, ADDRESS:PORT or URLs. With
# LONG_S (seconds) a request may take that long.
etcdctl_at() {
  local place asked="" endpoints="" pki=${PKI:-$ROOT/etc/kube-ha/etcd} limits=(--command-timeout 8s)
  if [[ -n ${LONG_S:-} ]]; then limits=(); fi
  for place in ${1//,/ }; do
    place=${place#https://}
    if [[ $place != *:* ]]; then place+=:2379; fi
    asked+="${asked:+, }$place"
    # The port first: where nobody listens, etcdctl would try for its whole time.
    if open_port "${place%:*}" "${place##*:}"; then endpoints+="${endpoints:+,}https://$place"; fi
  done
  if [[ -z $endpoints ]]; then
    echo "nobody listens at $asked" >&2
    return 1
  fi
  timeout "${LONG_S:-20}" etcdctl --endpoints "$endpoints" --cacert "${CLIENT_CA:-$pki/ca.crt}" \
    --cert "${CLIENT_CERT:-$pki/client.crt}" --key "${CLIENT_KEY:-$pki/client.key}" \
    --dial-timeout 2s "${limits[@]}" "${@:2}"
}

# An etcd that died before it had joined leaves folders, but no log: it has no data (etcd itself asks for the same).
etcd_has_data() { compgen -G "${DATA:-$HOME_DIR/etcd}/member/wal/*.wal" >/dev/null; }

# A removed member stops by itself; one that answers with a list that holds it has its vote, unless another member
# answers with one that does not: then the etcd here is a cluster of its own.
still_votes() {
  local rows address
  rows=$(listed_by 127.0.0.1) || return 1
  if [[ $rows != *", $NODE, "* ]]; then return 1; fi
  for address in $(other_members); do
    if rows=$(listed_by "$address") && [[ $rows != *", $NODE, "* ]]; then return 1; fi
  done
}
listed_by() { # listed_by ADDRESS: with a quorum behind it
  etcdctl_at "$1" --command-timeout 5s member list -w simple 2>/dev/null
}
# As its last phase knew them: what is kept for the guard, or by an older version for backups.
other_members() {
  local file
  for file in "$ROOT"/etc/kube-ha/etcd/{guard,backup}.values; do
    if [[ ! -f $file ]]; then continue; fi
    # shellcheck disable=SC2016 # of that shell
    bash -c 'source "$0"; printf "%s\n" $MEMBERS | sed "s/.*=//" | grep -vxF "$ADDRESS"' "$file" || true # there is none
    return
  done
}
# Data of a member that was removed can never be used by any etcd; it is kept until the next one here is removed.
set_aside_etcd() {
  local data=${DATA:-$HOME_DIR/etcd}
  if [[ ! -d $data/member ]]; then return; fi
  rm -rf "$data.removed"
  mkdir -m 700 "$data.removed"
  mv "$data/member" "$data.removed/"
}
