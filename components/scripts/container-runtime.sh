# shellcheck shell=bash
# Makes true that containerd runs as the config says, pulls as it says, and has run a container. Part of phase node;
# node.sh says its values.

# Read by containerd at every pull: no restart needed. One of a mirror that left the config would keep sending pulls
# there; those that are not ours stay.
registries() {
  local host text known wanted list=$STATE/registries
  wanted=$(awk -F'\t' 'NF {print $1}' <<<"$REGISTRY_HOSTS" | sort)
  known=$'ghcr.io\nregistry.k8s.io' # what may be there from before there was a list
  if [[ -f $list ]]; then known=$(<"$list"); fi
  # Before they are written: whatever a killed run leaves is known to the next one.
  awk NF <<<"$known"$'\n'"$wanted" | sort -u | put 644 "$list"
  while IFS=$'\t' read -r host text; do
    if [[ -z $host ]]; then continue; fi
    text=$(base64 -d <<<"$text")
    put 644 "$CERTS/$host/hosts.toml" <<<"$text"
  done <<<"$REGISTRY_HOSTS"
  for host in $known; do
    if [[ $'\n'$wanted$'\n' == *$'\n'"$host"$'\n'* || ! -e $CERTS/$host/hosts.toml ]]; then continue; fi
    rm -f "$CERTS/$host/hosts.toml"
    changes=$((changes + 1))
    log "removed $CERTS/$host/hosts.toml"
  done
  awk NF <<<"$wanted" | put 644 "$list"
}

runtime() {
  local url sum
  artefact containerd
  install_archive containerd "$url" "$sum" /usr/local 0
  artefact runc
  install_binary runc "$url" "$sum" /usr/local/sbin/runc
  artefact cni-plugins
  install_archive cni-plugins "$url" "$sum" /opt/cni/bin 0
  mkdir -p /etc/cni/net.d
  put 644 /etc/containerd/config.toml <<<"$CONTAINERD_CONFIG"
  registries
  put 644 /etc/systemd/system/containerd.service <<<"$CONTAINERD_UNIT"
  if [[ -n $CONTAINERD_PROXY ]]; then
    put 600 /etc/systemd/system/containerd.service.d/proxy.conf <<<"$CONTAINERD_PROXY"
  else
    put 600 /etc/systemd/system/containerd.service.d/proxy.conf </dev/null
  fi
  settle restart containerd.service /etc/systemd/system/containerd.service.d/proxy.conf /etc/containerd/config.toml \
    /etc/systemd/system/containerd.service "$STATE/containerd.artefact"
  wait_for 60 "containerd answering" ctr version
}

# What runs here is what the bundle was made with: tags of a registry can be moved, and without TLS anybody on the way
# can move them. Fetched by its digest and given its tag here, an image is never asked for by the tag; pinned, it is not
# collected either.
pinned_images() {
  local ref digest
  while read -r ref digest; do
    if [[ $(digest_of "$ref") == "$digest" ]]; then continue; fi
    wait_for 300 "image $ref pulled as $digest" pull_pinned "$ref" "$digest"
    unpin_others "$ref"
    changes=$((changes + 1))
    log "pulled $ref"
  done < <(awk '$1 ~ /^image\// {print $2, $3}' <<<"$ARTEFACTS")
}
digest_of() { ctr -n k8s.io images ls "name==$1" | awk -v ref="$1" '$1 == ref {print $3}'; }
pull_pinned() { # pull_pinned REFERENCE DIGEST
  local exact=${1%:*}@$2
  timeout 280 ctr -n k8s.io images pull --hosts-dir "$CERTS" "$exact" &&
    ctr -n k8s.io images tag --force "$exact" "$1" &&
    ctr -n k8s.io images label "$1" io.cri-containerd.pinned=pinned
}
unpin_others() { # unpin_others REFERENCE: of other versions nothing runs for long
  local other
  while read -r other; do
    if [[ $other != "$1" && $other == "${1%:*}":* ]]; then
      ctr -n k8s.io images label "$other" io.cri-containerd.pinned= >/dev/null
    fi
  done < <(ctr -n k8s.io images ls -q 'labels."io.cri-containerd.pinned"==pinned')
}

# A container really runs here, before anything relies on it.
prove_runtime() {
  if [[ -f $STATE/runtime-proof && $(<"$STATE/runtime-proof") == "$PAUSE_IMAGE" ]]; then return; fi
  if [[ -z $(digest_of "$PAUSE_IMAGE") ]]; then
    wait_for 120 "image $PAUSE_IMAGE pulled" ctr -n k8s.io images pull --hosts-dir "$CERTS" "$PAUSE_IMAGE"
  fi
  ctr -n k8s.io tasks kill -s SIGKILL kube-ha-proof >/dev/null 2>&1 || true # nothing is left over on the first try
  ctr -n k8s.io tasks rm -f kube-ha-proof >/dev/null 2>&1 || true
  ctr -n k8s.io containers rm kube-ha-proof >/dev/null 2>&1 || true
  timeout 60 ctr -n k8s.io run -d "$PAUSE_IMAGE" kube-ha-proof >"$STATE/proof.log" 2>&1 ||
    die "a test container does not start: $(tail -n 3 "$STATE/proof.log")" "see journalctl -u containerd on $NODE"
  wait_for 30 "test container running" proof_runs
  ctr -n k8s.io tasks rm -f kube-ha-proof >/dev/null
  ctr -n k8s.io containers rm kube-ha-proof >/dev/null
  put 644 "$STATE/runtime-proof" <<<"$PAUSE_IMAGE"
}

proof_runs() { [[ $(ctr -n k8s.io tasks ls) =~ kube-ha-proof[[:space:]].*RUNNING ]]; }
