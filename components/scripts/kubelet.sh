# shellcheck shell=bash
# The kubelet's unit, settings and files on a machine that has joined. Only definitions.

KUBELET_OWN_FILE=/etc/kube-ha/kubelet.d/50-spot.conf # read after the settings that all nodes share

# Nobody starts the kubelet between this and the drop-in that names the folder.
own_settings() {
  if [[ -n ${KUBELET_OWN:-} ]]; then
    put 600 "$ROOT$KUBELET_OWN_FILE" <<<"$KUBELET_OWN"
  elif [[ -e $ROOT$KUBELET_OWN_FILE ]]; then
    rm -f "$ROOT$KUBELET_OWN_FILE"
    changes=$((changes + 1))
  fi
}

# The kubelet asks this program for logins at registries; its name is the one of the settings.
PROVIDERS_FILE=/etc/kube-ha/credential-providers.yaml
PROVIDER=/usr/local/lib/kube-ha/credential-providers/kube-ha-registry-login
registry_login() {
  if [[ -n ${CREDENTIAL_PROVIDERS:-} ]]; then
    put 755 "$ROOT$PROVIDER" <<<"#!/bin/bash
exec /bin/bash /usr/local/lib/kube-ha/registry-login.sh"
    put 600 "$ROOT$PROVIDERS_FILE" <<<"$CREDENTIAL_PROVIDERS"
  elif [[ -e $ROOT$PROVIDERS_FILE ]]; then
    rm -rf "$ROOT$PROVIDERS_FILE" "$ROOT${PROVIDER%/*}"
    changes=$((changes + 1))
  fi
}

# What the drop-in reads of this machine alone. It is there only where a cloud controller manager is waited for.
CLOUD_ARGS=/etc/kube-ha/kubelet.env
cloud_args() {
  if [[ -n ${PROVIDER_ID:-} ]]; then
    put 600 "$ROOT$CLOUD_ARGS" <<<"KUBELET_CLOUD_ARGS=\"--cloud-provider=external --provider-id=$PROVIDER_ID\""
  elif [[ -e $ROOT$CLOUD_ARGS ]]; then
    rm -f "$ROOT$CLOUD_ARGS"
    changes=$((changes + 1))
  fi
}

# A joined node follows the kubelet settings kept in the cluster; its own identity may read them.
follow_kubelet_settings() {
  rm -rf /etc/kubernetes/tmp/kubeadm-kubelet-config* # kubeadm's copies of the settings before, one a run
  kubeadm upgrade node phase kubelet-config >"$STATE/kubelet-config.log" 2>&1 ||
    die "kubelet settings cannot be read from the cluster: $(tail -n 3 "$STATE/kubelet-config.log")" \
      "see that https://127.0.0.1:3446/readyz answers on $NODE"
  settle_kubelet
}
kubelet_files() {
  local name
  printf '%s\n' "$ROOT"/etc/systemd/system/{kubelet.service,kubelet.service.d/10-kubeadm.conf} \
    "$ROOT/var/lib/kubelet/config.yaml" "$STATE/kubelet.artefact"
  for name in "$ROOT$KUBELET_OWN_FILE" "$ROOT$PROVIDERS_FILE"; do
    if [[ -e $name ]]; then printf '%s\n' "$name"; fi
  done
}
# kubeadm makes them for everybody to read.
close_kubelet_files() {
  local name
  for name in config.yaml kubeadm-flags.env instance-config.yaml; do
    if [[ -f $ROOT/var/lib/kubelet/$name ]]; then chmod 600 "$ROOT/var/lib/kubelet/$name"; fi
  done
}
settle_kubelet() {
  local files
  close_kubelet_files
  mapfile -t files < <(kubelet_files)
  settle restart kubelet.service "${files[@]}"
}
# kubeadm has just started it with the files that are there now: no reason for another start.
kubelet_started() {
  local sums
  close_kubelet_files
  sums=$(kubelet_files | xargs sha256sum --)
  put 600 "$STATE/kubelet.service.sum" <<<"$sums"
}
