# shellcheck shell=bash
# Makes this machine a control plane node that serves: kubelet, API server, controller manager and scheduler of the
# wanted configuration. Every one is made by the same `kubeadm init`; its PKI and etcd are already there, so no other
# control plane node has to be alive. An existing one changes by kubeadm's phases. A new kubelet, which phase node has
# staged, replaces the running one while the API server is down.
# Variables:
#   ADDRESS, KUBEADM_CONFIG
#   AUDIT_POLICY, ADMISSION_CONFIG, OIDC_CA, AUDIT_WEBHOOK, AUTHENTICATION: texts of files of the API server; empty:
#                       it has none
#   CERTIFICATES        hash of this node's leaf certificates: changes when they are renewed
#   KEYS                generations of CAs and keys that were ever rotated; may be empty
#   APPLIED             hash that the node announces at the end
#   SERVING_ISSUED, CLOUD_DOMAIN, PROVIDER_ID: see identity.sh
# Changes: /etc/kubernetes but for the PKI, the static pods of the control plane, kube-ha-approver.service and
# /etc/kube-ha/approve.
CONFIG=/etc/kube-ha/kubeadm.yaml
MANIFEST=/etc/kubernetes/manifests/kube-apiserver.yaml
LOCAL_API=https://127.0.0.1:3446
NEXT=$HOME_DIR/next # where phase node has put another kubelet
# Value and the file it is the text of.
API_FILES="AUDIT_POLICY=/etc/kubernetes/audit-policy.yaml ADMISSION_CONFIG=/etc/kubernetes/admission.yaml
  OIDC_CA=/etc/kubernetes/oidc-ca.crt AUDIT_WEBHOOK=/etc/kubernetes/audit-webhook.yaml
  AUTHENTICATION=/etc/kubernetes/authentication.yaml"
KUBECONFIGS="admin controller-manager scheduler kubelet"
# past RBAC: kubeadm makes it to give admin.conf its rights in a new cluster, and it stays on no master
BREAK_GLASS=$ROOT/etc/kubernetes/super-admin.conf
# shellcheck source=kubeconfigs.sh disable=SC2154 # here: the folder of run.sh
source "$here/kubeconfigs.sh"
# shellcheck source=downloads.sh disable=SC2154 # here: the folder of run.sh
source "$here/downloads.sh"
# shellcheck source=kubelet.sh disable=SC2154 # here: the folder of run.sh
source "$here/kubelet.sh"
# shellcheck source=identity.sh disable=SC2154 # here: the folder of run.sh
source "$here/identity.sh"
# shellcheck source=update.sh disable=SC2154 # here: the folder of run.sh
source "$here/update.sh"
# shellcheck source=aside.sh disable=SC2154 # here: the folder of run.sh
source "$here/aside.sh"
# shellcheck source=cluster-reader.sh disable=SC2154
source "$here/cluster-reader.sh"
# shellcheck source=hooks.sh disable=SC2154
source "$here/hooks.sh"
# shellcheck source=node-record.sh
source "$here/node-record.sh"
# shellcheck source=admin.sh disable=SC2154
source "$here/admin.sh"
# shellcheck source=kubelets.sh disable=SC2154 # here: the folder of run.sh
source "$here/kubelets.sh"
# shellcheck source=judge.sh disable=SC2154 # here: the folder of run.sh
source "$here/judge.sh"
# shellcheck source=credentials.sh disable=SC2154 # here: the folder of run.sh
source "$here/credentials.sh"
# shellcheck source=approve.sh disable=SC2154 # here: the folder of run.sh
source "$here/approve.sh"
# shellcheck source=approver-unit.sh disable=SC2154 # here: the folder of run.sh
source "$here/approver-unit.sh"
APPROVER=$ROOT/etc/systemd/system/kube-ha-approver.service

# By its own CA key: which controller manager would sign a request, and with which CA, is not known while masters change
# one by one.
issue_identity() { # issue_identity FILE
  local known
  known=$(kubeadm kubeconfig user --config "$CONFIG" --client-name "system:node:$NODE" \
    --org system:nodes 2>"$STATE/kubeadm.log") ||
    die "no certificate for the kubelet: $(tail -n 3 "$STATE/kubeadm.log")"
  sed -n 's/^ *client-\(certificate\|key\)-data: *//p' <<<"$known" |
    while read -r part; do base64 -d <<<"$part"; done >"$1"
}

# As with the controller manager's: for a year, and renewed by the kubelet itself before that. The first CA of the
# bundle is the one whose key is here.
issue_serving() { # issue_serving FILE
  local key=$1.key
  local extensions="basicConstraints=critical,CA:FALSE
keyUsage=critical,digitalSignature
extendedKeyUsage=serverAuth
authorityKeyIdentifier=keyid
subjectAltName=DNS:$NODE,IP:$SERVING_ADDRESS"
  new_key "$key"
  new_request "$key" "server auth" |
    openssl x509 -req -CA "$ROOT/etc/kubernetes/pki/ca.crt" -CAkey "$ROOT/etc/kubernetes/pki/ca.key" \
      -set_serial "0x$(openssl rand -hex 15)" -days 365 -sha256 -extfile <(printf '%s\n' "$extensions") \
      -out "$1" 2>"$STATE/openssl.log" ||
    die "no serving certificate for the kubelet: $(tail -n 2 "$STATE/openssl.log")"
  cat "$key" >>"$1"
  rm -f "$key"
}

# Of this master nothing is remembered: what is here is half made, or of a life before. kubeadm keeps kubeconfigs that
# exist, whole or not, and the kubelet prefers a certificate that it finds to that in its kubeconfig.
clear_away() {
  local name
  # It makes the files that static pods mount, empty, as soon as they are gone.
  systemctl stop kubelet
  for name in $KUBECONFIGS; do rm -f "$ROOT/etc/kubernetes/$name.conf"; done
  rm -f "$ROOT"/var/lib/kubelet/pki/kubelet-{client,server}* "$BREAK_GLASS"
}

make_master() {
  local name ignored
  log "making a master with kubeadm init"
  mkdir -p "$ROOT/var/log/kubernetes"
  clear_away
  kubeconfigs
  renew_serving /etc/kubernetes/pki/ca.crt issue_serving
  # Before its Node can register, where there is a cluster: whoever takes this back has to know of it.
  if kubectl_admin get --raw /readyz >/dev/null 2>&1; then ask_for_self; fi
  # ExternalEtcdVersion asks every etcd member, and one of them may be down. FileAvailable and Port: what an interrupted
  # run of this very phase left behind; the machine was checked to be ours.
  ignored=ExternalEtcdVersion,Port-6443,Port-10257,Port-10259,Port-10250
  for name in kube-apiserver kube-controller-manager kube-scheduler; do
    ignored+=,FileAvailable--etc-kubernetes-manifests-$name.yaml
  done
  timeout 420 kubeadm init --config "$CONFIG" --skip-phases=addon,bootstrap-token,show-join-command \
    --ignore-preflight-errors="$ignored" >"$STATE/kubeadm.log" 2>&1 ||
    die "kubeadm init: $(grep -v '^\[' "$STATE/kubeadm.log" | tail -n 8)" \
      "see $STATE/kubeadm.log and journalctl -u kubelet on $NODE, then run pulumi up again"
  changes=$((changes + 1))
}

# Stop the apiserver in good order (it drains, HAProxies see it unready), change, start, wait: no request is lost.
change_master() {
  others_serve || true # the only one stops all the same; where others should be ready it has ended here
  pull_images
  expect_kubelets
  evict_for_kubelet
  log "reconfiguring the control plane"
  kubeconfigs
  unsettle master
  # Aside, and not away: a machine that loses its power in here serves again as it did.
  if kubelet_staged; then
    put_aside kube-controller-manager
    put_aside kube-scheduler
    give_up_leases
  fi
  put_aside kube-apiserver
  wait_for 120 "old apiserver stopped" nothing_on 6443
  if kubelet_staged; then
    # It closes its port some time before it ends, and only the kubelet that began to end it goes through with it.
    wait_for 90 "container of the old apiserver ended" api_server_ended
    swap_kubelet
  fi
  kubeadm init phase control-plane all --config "$CONFIG" >"$STATE/kubeadm.log" 2>&1 ||
    die "static pods: $(tail -n 3 "$STATE/kubeadm.log")"
  wait_for 180 "apiserver of $NODE ready" api_server_ready
  wait_for 120 "apiserver of $NODE steady, and taken back by HAProxy" steady
  nothing_aside
  changes=$((changes + 1))
}

# What an API server is about to ask of kubelets, each of them has, or nobody would read logs there any more. One that
# does not answer at all is not a reason against it. Asked when that changes: at first, and when a CA goes.
checks_kubelets() { grep -q 'kubelet-certificate-authority' "$CONFIG"; }
kubelets_sum() { sha256sum </etc/kubernetes/pki/ca.crt; }
expect_kubelets() {
  local found _
  if ! checks_kubelets || [[ $(remembered kubelets) == "$(kubelets_sum)" ]] ||
    ! kubectl_admin get --raw /readyz >/dev/null 2>&1; then
    return
  fi
  # A kubelet that just starts again breaks a connection, and answers the next one.
  for _ in 1 2 3; do
    found=$(unknown_kubelets /etc/kubernetes/pki/ca.crt | grep -v '(does not answer') || return 0
    sleep 5
  done
  die \
    "API servers would refuse $(wc -l <<<"$found") kubelet(s), so this one was not changed: $(head -n 5 <<<"$found" |
      paste -sd';')" "set kubelet.servingCertificates: issued and run pulumi up, so that they get one; see kubectl" \
    "get csr, and journalctl -u kube-ha-approver on each master"
}

# While everything serves: pulling takes longer than the rest of the change.
pull_images() {
  local wanted there image
  wanted=$(kubeadm config images list --config "$CONFIG" 2>/dev/null |
    awk '/\/(kube-apiserver|kube-controller-manager|kube-scheduler|pause):/')
  there=$(ctr -n k8s.io images ls -q 2>/dev/null)
  for image in $wanted; do
    if [[ $'\n'$there$'\n' == *$'\n'"$image"$'\n'* ]]; then continue; fi
    timeout 300 ctr -n k8s.io images pull --hosts-dir /etc/containerd/certs.d "$image" >"$STATE/pull.log" 2>&1 ||
      die "image $image cannot be pulled: $(tail -n 2 "$STATE/pull.log")" \
        "see that the registry has it; the control plane was not touched"
    log "pulled $image"
  done
}

# As on workers: containers may not outlive a kubelet of another minor version.
evict_for_kubelet() {
  local is wanted
  # No API at all: the only master, in the middle of a change. Nobody can be asked, and the way on is to go through with
  # it.
  if ! kubelet_staged || ! kubectl_admin get --raw /readyz >/dev/null 2>&1; then return; fi
  is=$(kubelet_version /usr/local/bin/kubelet)
  wanted=$(kubelet_version "$NEXT/kubelet")
  if (($(minor_of "$is") == $(minor_of "$wanted"))); then return; fi
  begin_update "kubelet ${is#v} -> ${wanted#v}" intrusive
}
kubelet_version() { "$1" --version | awk '{print $2}'; }

# Phase node has put another kubelet beside the one that runs.
kubelet_staged() { [[ -f $NEXT/kubelet.sum && -f $NEXT/kubelet ]]; }
swap_kubelet() {
  local sum
  sum=$(<"$NEXT/kubelet.sum")
  systemctl stop kubelet
  mv -f "$NEXT/kubelet" /usr/local/bin/kubelet
  mark_installed kubelet "$sum" /usr/local/bin/kubelet
  rm -f "$NEXT/kubelet.sum"
  # With its own settings and flags, as kubeadm made them when this master was made, and starts it.
  kubeadm init phase kubelet-start --config "$CONFIG" >"$STATE/kubeadm.log" 2>&1 ||
    die "kubelet does not start: $(tail -n 3 "$STATE/kubeadm.log")" \
      "see journalctl -u kubelet on $NODE, then run pulumi up again"
  kubelet_started
  log "swapped the kubelet"
}

# What the cluster keeps for upgrades and for joining nodes; this node's kubelet follows it at once, the others' when
# their turn comes.
publish_settings() {
  unsettle kubeadm
  kubeadm init phase upload-config all --config "$CONFIG" >"$STATE/kubeadm.log" 2>&1 ||
    die "upload of the configuration: $(tail -n 3 "$STATE/kubeadm.log")"
  changes=$((changes + 1))
}

settings_published() {
  [[ $(kubectl_admin -n kube-system get configmaps kubeadm-config kubelet-config --ignore-not-found -o name |
    wc -l) == 2 ]]
}

api_files() { # api_files wanted|unwanted: their paths
  local entry name is
  for entry in $API_FILES; do
    name=${entry%%=*}
    if [[ -n ${!name} ]]; then is=wanted; else is=unwanted; fi
    if [[ $is == "$1" ]]; then printf '%s\n' "${entry#*=}"; fi
  done
}
write_api_files() {
  local entry name
  for entry in $API_FILES; do
    name=${entry%%=*}
    if [[ -n ${!name} ]]; then put 600 "${entry#*=}" <<<"${!name}"; fi
  done
}
# When the apiserver no longer names them: until then its container may have to be recreated, which fails without them.
remove_api_files() {
  local file
  for file in $(api_files unwanted); do
    if [[ ! -e $file ]]; then continue; fi
    rm -f "$file"
    changes=$((changes + 1))
    log "removed $file"
  done
}

# Who lets kubelets have certificates, as soon as there is an API.
approver() {
  cat "$here"/{judge,credentials,approve}.sh | put 755 "$ROOT/etc/kube-ha/approve"
  approver_unit | put 644 "$APPROVER"
  # It keeps the keys that it was started with.
  settle restart kube-ha-approver.service "$APPROVER" "$ROOT"/etc/kube-ha/{approve,approver.crt,ca.crt}
}
# Everything the static pods are made of: not the kubelet's part, whose change restarts no apiserver.
control_plane_sum() {
  local file
  {
    sed '/^apiVersion: kubelet\.config/,$d' "$CONFIG"
    if [[ -n $KEYS ]]; then printf '%s\n' "$KEYS"; fi
    for file in $(api_files wanted) /etc/kubernetes/encryption.yaml; do
      if [[ -f $file ]]; then cat "$file"; fi
    done
  } | sha256sum
}
# Somebody who edits a static pod by hand gets it back as planned. None are recorded by versions that kept no sums.
static_pods_changed() {
  [[ -f $STATE/static-pods.sums ]] && ! sha256sum --status -c "$STATE/static-pods.sums" 2>/dev/null
}
remember_static_pods() {
  local sums
  sums=$(sha256sum /etc/kubernetes/manifests/kube-{apiserver,controller-manager,scheduler}.yaml)
  put 600 "$STATE/static-pods.sums" <<<"$sums"
}
remove_break_glass() {
  if [[ ! -e $BREAK_GLASS ]]; then return; fi
  rm -f "$BREAK_GLASS"
  changes=$((changes + 1))
  log "removed $BREAK_GLASS"
}
# A change that is cut off must not count as done, nor its revert as nothing to do.
unsettle() { put 600 "$STATE/$1.sum" <<<"a change is under way"; }
remembered() { if [[ -f $STATE/$1.sum ]]; then printf '%s\n' "$(<"$STATE/$1.sum")"; fi; }

main() {
  local control_plane settings
  await_resumed
  own
  put 600 "$CONFIG" <<<"$KUBEADM_CONFIG"
  renew_admin
  write_api_files
  control_plane=$(control_plane_sum)
  settings=$(sha256sum "$CONFIG")
  if [[ -z $(remembered master) ]]; then
    if kubelet_staged; then swap_kubelet; fi # of a master that was never made whole
    make_master
    put 600 "$STATE/kubeadm.sum" <<<"$settings" # kubeadm init has published them
    put 600 "$STATE/certificates.sum" <<<"$CERTIFICATES"
  elif [[ $(remembered master) != "$control_plane" || ! -f $MANIFEST ]] || static_pods_changed || kubelet_staged; then
    change_master
  elif kubeconfigs_missing; then
    kubeconfigs
    changes=$((changes + 1))
  else
    trust_ca
  fi
  wait_for 180 "apiserver of $NODE ready at https://$ADDRESS:6443/readyz" api_server_ready
  wait_for 60 "API answering at $LOCAL_API" kubectl_admin get --raw /readyz
  remove_break_glass # admin.conf has its rights by now
  ask_for_self
  remember_static_pods
  sync -f "${MANIFEST%/*}" # what kubeadm has written, before what says that it is there
  put 600 "$STATE/master.sum" <<<"$control_plane"
  if checks_kubelets; then kubelets_sum | put 600 "$STATE/kubelets.sum"; else rm -f "$STATE/kubelets.sum"; fi
  remove_api_files
  approver
  if [[ $(remembered kubeadm) != "$settings" ]] || ! settings_published; then
    publish_settings
    put 600 "$STATE/kubeadm.sum" <<<"$settings"
  fi
  awk '$1 == "kubernetesVersion:" {print $2}' "$CONFIG" | put 644 "$STATE/kubernetes" # phase node reads it
  if [[ $(remembered certificates) != "$CERTIFICATES" ]]; then
    renew_kubeconfigs
    put 600 "$STATE/certificates.sum" <<<"$CERTIFICATES"
  fi
  renew_identity /etc/kubernetes/pki/ca.crt issue_identity
  renew_serving /etc/kubernetes/pki/ca.crt issue_serving
  follow_kubelet_settings
  end_update
  announce "$APPLIED"
  tell_provider_id
  finish
}
