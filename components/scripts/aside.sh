# shellcheck shell=bash
# How the control plane of one machine steps aside in good order, so that clients see nothing, and comes back. Only
# definitions; phases source it. The static pods' manifests are in $ASIDE meanwhile: whoever comes next puts them back,
# also after a run that was cut off, and a unit does at a boot.
# Variables: ADDRESS. What asks etcd needs etcd-client.sh and etcd-identity.sh too.
ASIDE=$HOME_DIR/aside
MANIFESTS=$ROOT/etc/kubernetes/manifests
PUT_BACK=kube-ha-put-back.service

# Rows of `member list`: id, status, name, peer URLs, client URLs, is learner.
members_at() { etcdctl_at "$1" member list -w simple; }

nothing_on() { [[ -z $(ss -Hltn "sport = :$1") ]]; }
api_server_ready() {
  curl -fsS --max-time 5 --noproxy '*' --cacert /etc/kubernetes/pki/ca.crt "https://$ADDRESS:6443/readyz"
}

# Other apiservers that are ready now, by what the cluster itself lists.
other_ready_masters() {
  local address count=0
  for address in $(kubectl_admin get endpoints kubernetes -o 'jsonpath={.subsets[*].addresses[*].ip}' 2>/dev/null); do
    if [[ $address != "$ADDRESS" ]] &&
      curl -fsS --max-time 5 --noproxy '*' --cacert /etc/kubernetes/pki/ca.crt \
        "https://$address:6443/readyz" >/dev/null 2>&1; then
      count=$((count + 1))
    fi
  done
  printf '%d\n' "$count"
}
known_masters() { kubectl_admin get nodes -l node-role.kubernetes.io/control-plane -o name | wc -l; }

# Whether clients have another API server while this one is unavailable; ends the phase where there is one that should
# be ready, and is not.
others_serve() {
  local known others
  # One that does not serve (a flag it refuses, say) can only get better.
  if ! api_server_ready >/dev/null 2>&1; then return 1; fi
  known=$(known_masters) || die "the API does not say which masters there are"
  others=$(other_ready_masters)
  if ((known > 1 && others == 0)); then
    die "no other apiserver is ready, so this one cannot be restarted without an outage" \
      "repair the other masters first (kubectl get nodes; journalctl -u kubelet there)"
  fi
  ((known > 1))
}

# It closes its port some time before it ends.
api_server_ended() {
  local ids running id
  local labels="labels.\"io.kubernetes.pod.name\"==kube-apiserver-$NODE"
  labels+=",labels.\"io.kubernetes.container.name\"==kube-apiserver"
  ids=$(ctr -n k8s.io containers ls -q "$labels" 2>/dev/null) || return 1
  running=$(ctr -n k8s.io tasks ls 2>/dev/null | awk '$3 == "RUNNING" {print $1}') || return 1
  for id in $ids; do
    if [[ $'\n'$running$'\n' == *$'\n'"$id"$'\n'* ]]; then
      echo "container $id runs"
      return 1
    fi
  done
}

# The controllers of this machine have ended; they give up their leases, so that the others need not wait until these
# run out.
give_up_leases() {
  local name holder me
  wait_for 90 "old kube-controller-manager stopped" nothing_on 10257
  wait_for 90 "old kube-scheduler stopped" nothing_on 10259
  me=$(uname -n)
  for name in kube-controller-manager kube-scheduler; do
    holder=$(kubectl_admin -n kube-system get lease "$name" -o 'jsonpath={.spec.holderIdentity}' 2>/dev/null) ||
      continue
    if [[ $holder != "${me}_"* ]]; then continue; fi
    # || true: the lease runs out by itself, 15 s later.
    kubectl_admin -n kube-system patch lease "$name" --type merge \
      -p '{"spec":{"holderIdentity":""}}' >/dev/null 2>&1 || true
    log "gave up the lease $name"
  done
}

put_aside() { # put_aside NAME: the static pod of that name ends
  if [[ ! -f $MANIFESTS/$1.yaml ]]; then return; fi
  put_back_at_boot
  put 600 "$ASIDE/$1.yaml" <"$MANIFESTS/$1.yaml"
  rm -f "$MANIFESTS/$1.yaml"
}
# Were the machine to lose its power now, it would come back without its API server, and stay so until somebody runs an
# up. An update of its packages has a unit of its own, which comes to it later. systemd reads both at the next boot, and
# need not be told.
put_back_at_boot() {
  local units=$ROOT/etc/systemd/system
  put 644 "$units/$PUT_BACK" <<<"[Unit]
Description=Puts back what kube-ha had put aside when this machine went down
ConditionPathExists=!/etc/systemd/system/$RESUME
Before=kubelet.service
RequiresMountsFor=$HOME_DIR

[Service]
Type=oneshot
ExecStart=/bin/bash /usr/local/lib/kube-ha/put-back.sh

[Install]
WantedBy=multi-user.target"
  mkdir -p "$units/multi-user.target.wants"
  ln -sfn "../$PUT_BACK" "$units/multi-user.target.wants/$PUT_BACK"
  sync "$units/multi-user.target.wants"
}
nothing_aside() { # what was aside is in its place, or was recreated there
  rm -rf "$ASIDE"
  rm -f "$ROOT/etc/systemd/system/multi-user.target.wants/$PUT_BACK" "$ROOT/etc/systemd/system/$PUT_BACK"
}
drain_api_server() { # other nodes' HAProxies see it unready first
  put_aside kube-apiserver
  wait_for 120 "apiserver of $NODE stopped" nothing_on 6443
  wait_for 90 "container of the apiserver ended" api_server_ended
}
is_aside() { compgen -G "$ASIDE/*.yaml" >/dev/null; }
bring_back() {
  local file
  if ! is_aside; then return; fi
  for file in "$ASIDE"/*.yaml; do
    if [[ ! -s $MANIFESTS/${file##*/} ]]; then put 600 "$MANIFESTS/${file##*/}" <"$file"; fi
  done
  wait_for 180 "apiserver of $NODE ready" api_server_ready
  wait_for 120 "apiserver of $NODE steady, and taken back by HAProxy" steady
  nothing_aside
  log "its control plane serves again"
}
# Good once may be good by chance, and other nodes' HAProxies need two good checks before they send anybody here.
steady() {
  local n
  for ((n = 0; n < 5; n++)); do
    api_server_ready || return 1
    sleep 1
  done
  taken_back
}
taken_back() {
  [[ $(socat -t 5 - UNIX-CONNECT:/run/haproxy/admin.sock <<<"show stat") =~ kubernetes-api,"$NODE",[^$'\n']*,UP, ]]
}

# A planned stop of this etcd member must leave a quorum without it; says a successor to its leadership, an empty word
# where there is none.
etcd_successor() {
  local voters healthy=0 member successor="" id
  if ! systemctl is-active -q etcd || ! members_at 127.0.0.1 >/dev/null 2>&1; then return; fi
  voters=$(members_at 127.0.0.1 | grep -c ', false$')
  if ((voters == 1)); then return; fi
  id=$(identity_at 127.0.0.1)
  id=${id%% *}
  for member in $(members_at 127.0.0.1 |
    awk -F', ' -v url="https://$ADDRESS:2380" \
      '$4 != url && $6 == "false" {sub("https://", "", $4); sub(":2380", "", $4); print $4}'); do
    if same_cluster "$id" "$member"; then
      healthy=$((healthy + 1))
      successor=$member
    fi
  done
  ((voters == 2 || healthy >= voters / 2 + 1)) ||
    die "restarting this member would cost the quorum: only $healthy of the other $((voters - 1)) voters answer" \
      "repair those members first"
  printf '%s\n' "$successor"
}
hand_over_etcd() { # hand_over_etcd HEIR: no election, for which the cluster would have to wait
  local id
  if [[ -z $1 ]]; then return; fi
  # bash converts the id: it has 64 bits, awk's numbers have fewer.
  id=$(etcdctl_at "$1" endpoint status -w fields | field MemberID)
  # Where it is not the leader there is nothing to move, and etcdctl says so.
  if etcdctl_at 127.0.0.1 move-leader "$(printf %x "$id")" >/dev/null 2>&1; then
    sleep 2 # who was refused while it moved has asked again when this member goes too
  fi
}
