# shellcheck shell=bash
# One step of a restore of etcd on this machine; operations/restore.py asks for the steps in their order, machine by
# machine. It travels by itself.
#   look     tells what is here, in lines of a word and its fields; changes nothing
#   check    SNAPSHOT arrived whole, and the programs on this machine can restore it; no etcd is touched
#   quiet    no API server here answers from what it remembers of the cluster that was; it is put away until its turn
#   divert   this machine's HAProxy points to none of GONE any more
#   stop     etcd ends here; its data goes to etcd.before-restore, which stays until the next restore
#   restore  a cluster of this one member begins, with what SNAPSHOT holds, of an epoch above all before
#   restart  API server, controller manager and scheduler start again, so that none continues with what it knew before
# done     forgets that a restore was under way The new cluster has another id than the old one, and a higher epoch: a
# member that was unavailable, and comes back with its old data, is nothing to it, and does not start where it can ask
# (etcd-guard.sh). Its revisions begin far above the old ones and count as compacted, so that every client with a watch
# hears that it has to read again.
# Variables: STEP, ADDRESS, SNAPSHOT (path here, not encrypted), WANTED (its SHA-256: which restore this is), DEAD
#   (addresses that should be silent), EPOCH, GONE (words, names of masters and members that are gone). REVISION (that
#   the snapshot's name says; empty: none, of step check).
DATA=$HOME_DIR/etcd
PEER_URL=https://$ADDRESS:2380
MARK=$STATE/restore
BUMP=1000000000
MANIFEST=$ROOT/etc/kubernetes/manifests/kube-apiserver.yaml
PUT_AWAY=$HOME_DIR/aside.removed
# shellcheck disable=SC2034 # read by die
HINT="fix that, then run the same make restore again: it continues where it stopped"

# shellcheck source=etcdctl.sh disable=SC2154 # here: the folder of run.sh
source "$here/etcdctl.sh"
# shellcheck source=etcd-client.sh disable=SC2154 # run.sh says where
source "$here/etcd-client.sh"
# shellcheck source=etcd-identity.sh disable=SC2154
source "$here/etcd-identity.sh"

say() { # say WORD FIELD...
  local IFS=$'\t'
  printf '%s\n' "$*"
}
content_of() { if [[ -f $1 ]]; then cat "$1"; fi; }

prepared() { # keys, settings, unit and programs of a member are here
  local path
  for path in "$PKI"/{server.key,client.key,etcd.env} "$ROOT/etc/systemd/system/etcd.service"; do
    if [[ ! -f $path ]]; then return 1; fi
  done
  command -v etcdutl >/dev/null
}

look() {
  local address is id epoch quorum=0 ready=0 data=0 master=0
  if prepared; then ready=1; fi
  if etcd_has_data; then data=1; fi
  if [[ -f $ROOT/etc/kubernetes/manifests/kube-apiserver.yaml || -f $HOME_DIR/aside.removed/kube-apiserver.yaml ]]; then
    master=1
  fi
  read -r id epoch < <(cluster_recorded)
  say recorded "$id" "$epoch"
  say newest "$(content_of "$STATE/etcd.newest")"
  if ((ready)); then
    read -r is epoch _ < <(identity_at "$ADDRESS") || is=""
    if [[ -n $is ]]; then say serving "$is" "$epoch"; fi
  fi
  if ((ready)) && etcdctl_at "$ADDRESS" member list >/dev/null 2>&1; then quorum=1; fi
  say owner "$(content_of "$STATE/owner")"
  say ready "$ready"
  say data "$data"
  say quorum "$quorum"
  say master "$master"
  say restoring "$(content_of "$MARK")"
  say free "$(df -Pk "$HOME_DIR" 2>/dev/null | awk 'NR == 2 {print $4}')"
  for address in $DEAD; do
    if open_port "$address" 2380 || open_port "$address" 2379; then say alive "$address"; fi
  done
  say end
}

check() {
  local is version own revision
  is=$(sha256sum <"$SNAPSHOT")
  [[ ${is%% *} == "$WANTED" ]] || die "the snapshot did not arrive as it was sent" "run it again"
  is_whole "$SNAPSHOT" || die "the snapshot is not whole" "take another one"
  version=$(etcdutl snapshot status "$SNAPSHOT" -w fields 2>/dev/null | field Version) ||
    die "etcdutl cannot read the snapshot" "take another one"
  revision=$(etcdutl snapshot status "$SNAPSHOT" -w fields 2>/dev/null | field Revision)
  if [[ -n ${REVISION:-} && $revision != "$REVISION" ]]; then
    die "the snapshot is of revision $revision, and its name says $REVISION" \
      "it is not what it is called: take another one"
  fi
  own=$(etcdutl version | awk '$1 == "etcdutl" {print $3}')
  # What an older etcd wrote can be read; the other way round there is no promise.
  if [[ $version == *.*.* && $(printf '%s\n' "${version%.*}" "${own%.*}" | sort -V | tail -n 1) != "${own%.*}" ]]; then
    die "the snapshot is of etcd $version, and this machine has $own" \
      "set the versions in the config to those of the day of the snapshot"
  fi
  log "the snapshot is whole: etcd $version"
}

# Asked to end, it would drain for up to two minutes what it no longer has an answer for. Where etcd's own stop puts it
# (etcd-stopped.sh), so that the next phase etcd-member brings it back, should this be interrupted.
quiet() {
  local pids
  own
  if [[ -f $MANIFEST ]]; then
    put 600 "$PUT_AWAY/kube-apiserver.yaml" <"$MANIFEST"
    rm -f "$MANIFEST"
  fi
  pids=$(api_server)
  if [[ -z $pids ]]; then return; fi
  # shellcheck disable=SC2086 # numbers
  kill -KILL $pids 2>/dev/null || true # it may just have ended
  wait_for 60 "API server of $NODE ended" no_api_server
  log "the API server is put away until etcd is restored"
}
api_server() { pgrep -x kube-apiserver || true; } # none is an answer
no_api_server() { [[ -z $(api_server) ]]; }
brought_back() {
  if [[ ! -f $PUT_AWAY/kube-apiserver.yaml ]]; then return; fi
  put 600 "$MANIFEST" <"$PUT_AWAY/kube-apiserver.yaml"
  rm -rf "$PUT_AWAY"
}

# As phase node does when a master leaves the list. The config keeps listing it, and the next node phase here lists it
# again: by then it is a new member, or lost.
divert() {
  local name server new=$ROOT/etc/haproxy/.kube-ha.cfg.new file=$ROOT/etc/haproxy/haproxy.cfg
  own
  if ! grep -qs kubernetes-api "$file"; then return; fi
  awk -v gone=" $GONE " '$1 == "server" {name = $2; sub(/-unchecked$/, "", name); if (index(gone, " " name " ")) next}
    {print}' "$file" >"$new"
  if cmp -s "$new" "$file"; then
    rm -f "$new"
    return
  fi
  rm -f "$STATE/haproxy.service.sum" # whatever phase comes next reloads what it wants
  for name in $GONE; do
    for server in "kubernetes-api/$name" "kubernetes-api/$name-unchecked" "etcd/$name"; do
      # It answers well, too, where it has no such server.
      socat -t 5 - UNIX-CONNECT:/run/haproxy/admin.sock >/dev/null \
        <<<"set server $server state maint; shutdown sessions server $server"
    done
  done
  haproxy -c -q -f "$new" || die "HAProxy refuses to run without $GONE" "see $new"
  put 644 "$file" <"$new"
  rm -f "$new"
  systemctl reload haproxy
  log "HAProxy points to $GONE no more"
}

stop() {
  own
  systemctl stop etcd
  if [[ -d $DATA/member ]]; then
    if [[ $(content_of "$MARK") == "$WANTED" ]]; then
      rm -rf "$DATA/member" # of this very restore, which was cut off; what was there before is beside already
    else
      rm -rf "$DATA.before-restore"
      install -d -m 700 "$DATA.before-restore"
      mv "$DATA/member" "$DATA.before-restore/"
    fi
  fi
  rm -f "$PKI/bootstrap.env" # no word of the cluster that was
  log "etcd is stopped, its data is in $DATA.before-restore"
}

restore() {
  local answer is epoch
  own
  [[ ! -d $DATA/member ]] || die "there is data in $DATA" "run the same make restore again"
  put 600 "$MARK" <<<"$WANTED"
  # Before there is data of it: whatever this is cut off at, no etcd of an older epoch is joined from here on.
  record_cluster - "$EPOCH"
  rm -f "$STATE/etcd.refused"
  rm -rf "$DATA.restoring"
  answer=$(umask 077 &&
    etcdutl snapshot restore "$SNAPSHOT" --data-dir "$DATA.restoring" --name "$NODE" \
      --initial-cluster "$NODE=$PEER_URL" \
      --initial-advertise-peer-urls "$PEER_URL" --initial-cluster-token "$CLUSTER-$CLUSTER_ID-$EPOCH-$(date +%s)" \
      --bump-revision "$BUMP" --mark-compacted 2>&1) ||
    die "etcdutl cannot restore the snapshot: $(tail -n 2 <<<"$answer" | cut -c1-400)"
  install -d -m 700 "$DATA"
  mv "$DATA.restoring/member" "$DATA/"
  rmdir "$DATA.restoring"
  sync -f "$DATA"
  systemctl enable -q etcd
  systemctl start etcd
  wait_for 120 "etcd answering at $ADDRESS" answers "$ADDRESS"
  etcdctl_at "$ADDRESS" put "$EPOCH_KEY" "$EPOCH" >/dev/null ||
    die "etcd takes no write" "journalctl -u etcd here tells why"
  read -r is epoch _ < <(identity_at "$ADDRESS") ||
    die "etcd at $ADDRESS does not tell which cluster it is of" "journalctl -u etcd here tells why"
  [[ $epoch == "$EPOCH" ]] || die "etcd says epoch $epoch and not $EPOCH" "run the same make restore again"
  record_cluster "$is" "$epoch"
  log "etcd serves what the snapshot holds, as a cluster of this one member"
}

control_plane() { pgrep -x 'kube-apiserver|kube-controller|kube-scheduler' || true; } # none is an answer
processes_ended() { [[ -z $(comm -12 <(sort <<<"$1") <(control_plane | sort)) ]]; }
api_server_ready() {
  curl -fsS --max-time 5 --noproxy '*' --cacert "$ROOT/etc/kubernetes/pki/ca.crt" "https://$ADDRESS:6443/readyz"
}
restart() {
  local pids
  own
  pids=$(control_plane)
  if [[ -n $pids ]]; then
    # At once: asked to end, an API server drains for up to two minutes what it no longer has an answer for.
    # shellcheck disable=SC2086 # numbers
    kill -KILL $pids 2>/dev/null || true # one of them may just have ended
    wait_for 30 "old control plane of $NODE ended" processes_ended "$pids"
    log "the old control plane of $NODE has ended"
  fi
  brought_back
  systemctl restart kubelet # it waits minutes before it starts what has failed for a while; a new one does not
  wait_for 240 "apiserver of $NODE ready at https://$ADDRESS:6443/readyz" api_server_ready
  log "the control plane of $NODE has started again"
}

forget() {
  own
  rm -f "$MARK"
  rm -rf "$HOME_DIR/restore"
}

main() {
  case $STEP in
    look) look ;;
    check) check ;;
    quiet) quiet ;;
    divert) divert ;;
    stop) stop ;;
    restore) restore ;;
    restart) restart ;;
    done) forget ;;
    *) die "no step $STEP" "see the head of restore.sh" ;;
  esac
}
