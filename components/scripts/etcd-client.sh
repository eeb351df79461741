# shellcheck shell=bash
# How a machine of etcd asks the members, and whether a snapshot is whole: what etcd-member.sh, snapshot.sh and restore.sh share. Only definitions; they
# source it.
PKI=$ROOT/etc/kube-ha/etcd

etcdctl_at() { # etcdctl_at ADDRESS[:PORT] ARGUMENT...
  local at=$1
  if [[ $at != *:* ]]; then at+=:2379; fi
  shift
  timeout 20 etcdctl --endpoints "https://$at" --cacert "$PKI/ca.crt" --cert "$PKI/client.crt" --key "$PKI/client.key" --dial-timeout 2s --command-timeout 8s "$@"
}

# field NAME: the first one of that name in what etcdctl says with `-w fields`.
field() { awk -F' : ' -v key="\"$1\"" '$1 == key && !seen++ {gsub(/"/, "", $2); print $2}'; }

open_port() { timeout 3 bash -c "</dev/tcp/$1/$2" 2>/dev/null; }

# etcd ends a snapshot with the SHA-256 of what comes before. `snapshot status` does not look at it: a file that was cut off may well pass there.
is_whole() { # is_whole FILE
  local is said
  is=$(head -c -32 "$1" | sha256sum)
  said=$(tail -c 32 "$1" | od -An -tx1 | tr -d ' \n')
  [[ -n $said && ${is%% *} == "$said" ]]
}
