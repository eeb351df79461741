# shellcheck shell=bash
# Makes the machine ready for its roles: packages, kernel settings, container runtime, kubelet, and HAProxy as the local
# load balancer of the API. Wipes a machine of an older generation of this node first.
# Variables:
#   ROLES               words; a load balancer gets only PACKAGES, PROXY_ENV, HAPROXY_CFG, CA_CRT, APPLIED, OS_*, VIP,
#                       INGRESS and FIREWALL, and is not a node of Kubernetes
#   ARTEFACTS           lines "name url sha256"; of images "image/name reference digest"
#   PACKAGES            words
#   KUBERNETES          version
#   PROXY_ENV           lines of an environment file; may be empty
#   SYSCTL, MODULES     texts of files, as the following
#   CONTAINERD_CONFIG, CONTAINERD_UNIT, CONTAINERD_PROXY (may be empty)
#   REGISTRY_HOSTS      lines "host<TAB>base64 of hosts.toml"
#   PAUSE_IMAGE         reference
#   KUBELET_UNIT, KUBELET_DROPIN, HAPROXY_CFG
#   CA_CRT              the CAs that clients on this machine trust, PEM
#   APPLIED             hash that the node announces when all of this is so
#   OS_*                see os.sh
#   SERVING_ISSUED, CLOUD_DOMAIN, PROVIDER_ID, ADDRESS: see identity.sh
#   VIP                 address:port, where phase vip follows
#   INGRESS             1: phase ingress follows
#   METRICS             1: what add-on prometheus reads of the machine is written every minute, see metrics.sh
#   METRICS_VIP         address of the virtual IP, where this machine may have it
#   ADDON_FOLDERS       words: add-ons that keep files on the machine, see addon-folders.sh
#   KUBELET_OWN         settings of this kubelet alone, beside those that all share; may be unset
#   CREDENTIAL_PROVIDERS  the kubelet's CredentialProviderConfig, see registry-login.sh; may be unset
#   SPOT_NOTICE         1: the cloud may take the machine away, and says so before, see spot-notice.sh
#   HOOKS               the user's webhook, JSON; may be unset
#   FIREWALL            what the machine lets in, see firewall.sh
#   DISK_GIB            in a cloud: size of the disk at /var/lib/kube-ha, on which etcd is
# Changes: the units containerd, kubelet and haproxy, the files named above, packages, /usr/local/lib/kube-ha.
CERTS=/etc/containerd/certs.d
NEXT=$HOME_DIR/next # the kubelet that phase master is to put in place
# shellcheck source=container-runtime.sh disable=SC2154 # here: the folder of run.sh
source "$here/container-runtime.sh"
# shellcheck source=kubelet.sh disable=SC2154 # here: the folder of run.sh
source "$here/kubelet.sh"
# shellcheck source=etcdctl.sh disable=SC2154 # here: the folder of run.sh
source "$here/etcdctl.sh"
# shellcheck source=downloads.sh disable=SC2154 # here: the folder of run.sh
source "$here/downloads.sh"
# shellcheck source=wipe.sh disable=SC2154 # here: the folder of run.sh
source "$here/wipe.sh"
# shellcheck source=cluster-reader.sh
source "$here/cluster-reader.sh"
# shellcheck source=hooks.sh disable=SC2154
source "$here/hooks.sh"
# shellcheck source=update.sh
source "$here/update.sh"
# shellcheck source=identity.sh disable=SC2154
source "$here/identity.sh"
# shellcheck source=etcd-client.sh disable=SC2154
source "$here/etcd-client.sh"
# shellcheck source=etcd-identity.sh disable=SC2154
source "$here/etcd-identity.sh"
# shellcheck source=aside.sh disable=SC2154
source "$here/aside.sh"
# shellcheck source=admin.sh disable=SC2154
source "$here/admin.sh"
# shellcheck source=os.sh disable=SC2154
source "$here/os.sh"
# shellcheck source=doors.sh disable=SC2154
source "$here/doors.sh"
# shellcheck source=firewall.sh disable=SC2154
source "$here/firewall.sh"
# shellcheck source=api-view.sh disable=SC2154
source "$here/api-view.sh"
# shellcheck source=metrics.sh disable=SC2154
source "$here/metrics.sh"
# shellcheck source=addon-folders.sh disable=SC2154
source "$here/addon-folders.sh"
# shellcheck source=spot-notice.sh disable=SC2154
source "$here/spot-notice.sh"

artefact() { # artefact NAME: sets url and sum
  url="" sum=""
  # not among this node's artefacts: both stay empty
  read -r url sum < <(awk -v name="$1" '$1 == name {print $2, $3}' <<<"$ARTEFACTS") || true
}

packages() {
  local missing=() name
  for name in $PACKAGES; do
    # || true: absent is an answer
    [[ $(dpkg-query -W -f='${db:Status-Status}' "$name" 2>/dev/null || true) == installed ]] || missing+=("$name")
  done
  if ((${#missing[@]})); then
    log "installing ${missing[*]}"
    apt apt-get -qq update ||
      die "apt-get update: $(tail -n 3 "$STATE/apt.log")" "see that the package sources in /etc/apt are reachable"
    apt apt-get -qq -y --no-install-recommends install "${missing[@]}" ||
      die "apt-get install ${missing[*]}: $(tail -n 5 "$STATE/apt.log")" "see /var/lib/kube-ha/state/apt.log"
    changes=$((changes + 1))
  fi
}

kernel() {
  local name
  put 644 /etc/modules-load.d/kube-ha.conf <<<"$MODULES"
  for name in $MODULES; do
    # A container cannot load modules; what is missing there shows in the runtime check.
    modprobe -q "$name" || [[ $CONTAINER == 1 ]] ||
      die "cannot load kernel module $name" "install the full kernel package"
  done
  put 644 /etc/sysctl.d/90-kube-ha.conf <<<"$SYSCTL"
  sysctl -q -p /etc/sysctl.d/90-kube-ha.conf
}

kubelet() {
  local url sum name
  for name in kubeadm kubectl kubelet; do
    artefact "$name"
    # Workers have no kubectl: they hold no credential for it.
    if [[ -z $url ]]; then continue; fi
    if [[ $name == kubelet ]] && waits_for_api_server; then
      stage_kubelet "$url" "$sum"
    else
      install_binary "$name" "$url" "$sum" "/usr/local/bin/$name"
    fi
  done
  put 600 /etc/systemd/system/kubelet.service <<<"$KUBELET_UNIT"
  put 600 /etc/systemd/system/kubelet.service.d/10-kubeadm.conf <<<"$KUBELET_DROPIN"
  cloud_args
  own_settings
  registry_login
  if ! kubelet_made; then
    systemctl daemon-reload
    systemctl enable -q kubelet # kubeadm starts it
    return
  fi
  trust_cluster_ca
  if [[ $ROLES == *master* ]]; then
    # The API may be away until the master phase, which comes next, has fixed it; the rest of the settings is that
    # phase's.
    settle_kubelet
    return
  fi
  follow_kubelet_settings
  end_update
  announce "$APPLIED"
  tell_provider_id
}

# The minor version that runs here and the one that is wanted, where they differ: "2.3 -> 2.4". Upstream's addresses
# hold it, and mirrors keep them.
other_minor() { # other_minor NAME
  local url sum is wanted
  artefact "$1"
  is=$("/usr/local/bin/$1" --version 2>/dev/null) || return 0 # not there yet
  if [[ ! $url =~ /v([0-9]+\.[0-9]+)\.[0-9]+/ ]]; then return; fi
  wanted=${BASH_REMATCH[1]}
  if [[ $is =~ [[:space:]]v?([0-9]+\.[0-9]+)\.[0-9]+ && ${BASH_REMATCH[1]} != "$wanted" ]]; then
    printf '%s -> %s\n' "${BASH_REMATCH[1]}" "$wanted"
  fi
}

# Containers outlive a restart of kubelet and containerd, but not for certain one of another minor version. A master's
# own phase sees to its update.
announce_update() {
  local kubelet containerd
  if [[ $ROLES == *master* ]]; then return; fi
  kubelet=$(other_minor kubelet)
  containerd=$(other_minor containerd)
  if [[ -n $kubelet$containerd ]]; then
    begin_update "${kubelet:+kubelet $kubelet}${kubelet:+${containerd:+, }}${containerd:+containerd $containerd}" \
      intrusive
  elif [[ ! -f $WHOLE ]]; then
    begin_update "configuration $APPLIED"
  fi
}

# A master's kubelet must not be newer than its API server, and another version of it starts the static pods again:
# phase master changes both, once the API server has drained.
waits_for_api_server() { [[ $ROLES == *master* ]] && kubelet_made; }
stage_kubelet() { # stage_kubelet URL SUM
  local is=""
  if [[ -f $NEXT/kubelet.sum ]]; then is=$(<"$NEXT/kubelet.sum"); fi
  if installed kubelet "$2"; then
    if [[ -n $is ]]; then drop_staged; fi # of a change that was taken back
  elif [[ -f $STATE/kubelet.artefact && $(<"$STATE/kubelet.artefact") == "$2" ]]; then
    drop_staged
    install_binary kubelet "$1" "$2" /usr/local/bin/kubelet # what somebody changed by hand
  elif [[ $is != "$2" || ! -f $NEXT/kubelet ]]; then
    drop_staged
    fetch "$1" "$2" "$NEXT/kubelet"
    chmod 755 "$NEXT/kubelet"
    put 600 "$NEXT/kubelet.sum" <<<"$2"
  fi
}
drop_staged() { rm -f "$NEXT/kubelet.sum" "$NEXT/kubelet" "$NEXT/kubelet.part"; }

# Once a master has finished a newer minor version (which is when its settings are published), what it has stored may be
# unreadable to an
# older API server. Where no API answers, this machine's own word counts.
refuse_older_minor() {
  local is=""
  if [[ $ROLES != *master* ]] || ! kubelet_made; then return; fi
  is=$(kubectl_admin -n kube-system get configmap kubeadm-config \
    -o 'jsonpath={.data.ClusterConfiguration}' 2>/dev/null | awk '$1 == "kubernetesVersion:" {print $2}') || is=""
  if [[ -z $is && -f $STATE/kubernetes ]]; then is=$(<"$STATE/kubernetes"); fi
  if [[ -z $is ]] || (($(minor_of "$KUBERNETES") >= $(minor_of "$is"))); then return; fi
  die "a master of this cluster has finished Kubernetes ${is#v}, so it cannot go back to $KUBERNETES" \
    "set cluster.kubernetes to ${is#v} and run pulumi up, which continues where it stopped; to go back, restore a" \
    "snapshot of etcd from before the change"
}

# A master asks who is a member of etcd; where members are elsewhere, it needs the client all the same.
etcd_client() {
  local url sum
  artefact etcd
  if [[ -n $url ]]; then install_archive etcdctl "$url" "$sum" /usr/local/bin 1 --wildcards '*/etcdctl'; fi
}

# The kubelet trusts the CAs of this step, and is known by the one that signs. On a master the rest is the master
# phase's: it has the keys then.
trust_cluster_ca() {
  embed_ca /etc/kube-ha/ca.crt "$ROOT/etc/kubernetes/kubelet.conf"
  if [[ $ROLES == *master* ]]; then return; fi
  put 644 "$ROOT/etc/kubernetes/pki/ca.crt" </etc/kube-ha/ca.crt
  renew_identity /etc/kube-ha/ca.crt request_identity
  renew_serving /etc/kube-ha/ca.crt request_serving
}

# Whether the kubelet has what it starts with. What is missing is the business of the phases master and join.
kubelet_made() {
  [[ -f $ROOT/etc/kubernetes/kubelet.conf && -f $ROOT/var/lib/kubelet/config.yaml ]] || return 1
  [[ $ROLES == *master* ]] || joined
}

servers_of() { awk '$1 == "listen" {door = $2} $1 == "server" {print door "/" $2}' "$1" | sort; }
haproxy_says() { socat -t 5 - UNIX-CONNECT:/run/haproxy/admin.sock <<<"$1" >/dev/null; }

# A reload leaves old sessions alone. Those to a master, or a member of etcd, that is no longer listed must end: once
# its etcd member is gone its apiserver answers reads and watches from what it last knew, for over a minute, and says
# nothing new.
leave_old_masters() { # leave_old_masters NEW-CONFIG
  local gone name
  if [[ ! -S /run/haproxy/admin.sock || ! -f /etc/haproxy/haproxy.cfg ]]; then return; fi
  gone=$(comm -23 <(servers_of /etc/haproxy/haproxy.cfg) <(servers_of "$1"))
  if [[ -z $gone ]]; then return; fi
  rm -f "$STATE/haproxy.service.sum" # were this cut off and taken back, a reload must end the maintenance
  for name in $gone; do haproxy_says "set server $name state maint"; done
  sleep 2 # short requests under way end by themselves
  for name in $gone; do haproxy_says "shutdown sessions server $name"; done
  log "ended sessions to $(xargs <<<"$gone")"
}

local_api() {
  local answer new=/etc/haproxy/.kube-ha.cfg.new
  put 644 /etc/kube-ha/ca.crt <<<"$CA_CRT"
  mkdir -p /etc/haproxy
  printf '%s\n' "$HAPROXY_CFG" >"$new"
  answer=$(haproxy -c -f "$new" 2>&1) ||
    die "HAProxy refuses its new configuration, the running one stays: $(tail -n 3 <<<"$answer")" \
      "report this configuration: $new"
  leave_old_masters "$new"
  put 644 /etc/haproxy/haproxy.cfg <"$new"
  rm -f "$new"
  # Before HAProxy stops listening there: the address goes where it is wanted, or nowhere.
  if [[ -z ${VIP:-} ]]; then without_vip; fi
  if [[ -z ${INGRESS:-} ]]; then without_ingress; fi
  systemctl unmask -q haproxy
  settle reload haproxy.service /etc/haproxy/haproxy.cfg /etc/kube-ha/ca.crt
}

# A disk that was made bigger: the cloud tells the machine in its own time, and the file system follows while it is
# mounted. One that is bigger than that has been so before, and stays.
grow_data_disk() {
  local disk before
  [[ -n ${DISK_GIB:-} ]] || return 0
  disk=$(findmnt -nro SOURCE --mountpoint "$HOME_DIR" || true) # nothing there: phase preflight refuses such a machine
  [[ -n $disk ]] || die "no disk of its own is mounted at $HOME_DIR" "see blkid and journalctl -u cloud-init on $NODE"
  wait_for 300 "disk $disk of $DISK_GIB GiB" has_gib "$disk" "$DISK_GIB"
  before=$(stat -f -c %b "$HOME_DIR")
  resize2fs "$disk" >"$STATE/resize.log" 2>&1 ||
    die "resize2fs $disk: $(tail -n 3 "$STATE/resize.log")" "e2fsck -n $disk"
  if [[ $(stat -f -c %b "$HOME_DIR") != "$before" ]]; then
    changes=$((changes + 1))
    log "the file system of $HOME_DIR has all of $DISK_GIB GiB now"
  fi
}
has_gib() { (($(blockdev --getsize64 "$1") >= $2 << 30)); }

# An etcd member that has data is started before anybody asks whether a cluster exists.
revive_etcd() {
  if etcd_has_data && [[ -f /etc/systemd/system/etcd.service ]]; then systemctl start --no-block etcd; fi
}

# The config wants another machine under this node's name, and it is this one once more: nothing of what it was may be
# left.
renew() {
  refuse_voter
  log "wiping what was incarnation $(incarnation) of this node: it becomes incarnation $INCARNATION"
  wipe
  changes=$((changes + 1))
}

main() {
  own renew
  renew_admin
  mkdir -p /usr/local/lib/kube-ha
  # shellcheck disable=SC2154 # `here` is run.sh's folder
  if [[ $here != /usr/local/lib/kube-ha ]]; then cp -f "$here"/*.sh /usr/local/lib/kube-ha/; fi # it is, after a reboot
  # For a person who has to wipe the machine by hand.
  {
    # shellcheck disable=SC2016 # of that script
    printf '%s\n' '#!/bin/bash' 'values() { printf "NODE=%q\nCLUSTER=%q\nCLUSTER_ID=%q\nCONTAINER=%q\n# end\n" "$@"; }'
    printf 'values %q %q %q %q | bash /usr/local/lib/kube-ha/run.sh leave "$@"\n' \
      "$NODE" "$CLUSTER" "$CLUSTER_ID" "$CONTAINER"
  } | put 755 /usr/local/lib/kube-ha/leave
  if is_load_balancer; then
    put 644 "$STATE/load-balancer" <<<"$NODE"
  else
    rm -f "$STATE/load-balancer" # of a machine that was one, and was released with its files
    if [[ $ROLES != etcd ]]; then begin "$APPLIED"; fi
  fi
  packages
  set_up_firewall
  grow_data_disk
  if [[ $ROLES == *etcd* ]]; then revive_etcd; fi
  if [[ $ROLES == etcd ]]; then
    os_update
  elif is_load_balancer; then
    local_api
    os_update
    stand_by_again
  else
    refuse_older_minor
    know_whole
    kernel
    local_api
    begin "$APPLIED" # by a door that may have been fixed only now
    know_hooks
    os_update
    announce_update
    runtime
    pinned_images
    prove_runtime
    put 644 "$STATE/applied" <<<"$APPLIED"
    etcd_client
    measure
    await_notice
    drop_addon_folders
    kubelet
    if [[ $ROLES == *master* ]]; then bring_back; fi # with the containerd and kubelet of now
    put 644 "$WHOLE" <<<"$APPLIED"
  fi
  gone_on
  finish
}
