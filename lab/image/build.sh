#!/bin/bash
# Makes the machine image of the lab: localhost/kube-ha-lab:<key>, also tagged :current, where <key> is the hash of this
# folder. The archive stays in $KUBE_HA_CACHE/image/<key>.tar, so an image lost by the engine is back in seconds.
# KUBE_HA_DEBIAN_MIRROR: another Debian mirror than the default one.
set -euo pipefail
shopt -s inherit_errexit
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=lab/engine.sh
source "$here/../engine.sh"

say() { printf '%s image   %s\n' "$(date +%T)" "$*"; }

image_key() {
  (cd "$here" && sha256sum Containerfile build.sh mirror.sh packages setup.sh) | sha256sum | cut -c1-12
}

# Debian 12 and not newer: from systemd 253 on, cgroup v1 is refused, which some hosts still have.
bootstrap() { # bootstrap TAR: a file system from Debian packages, no container engine needed
  local tar=$1 packages options
  packages=$(paste -sd, "$here/packages")
  # shellcheck disable=SC2016  # mmdebstrap gives its hooks the root folder as $1
  options=(--variant=minbase "--include=$packages"
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*'
    --dpkgopt='path-exclude=/usr/share/locale/*'
    --customize-hook="copy-in $here/setup.sh /tmp"
    --customize-hook='chroot "$1" bash /tmp/setup.sh' --customize-hook='rm "$1/tmp/setup.sh"'
    --customize-hook="upload $here/mirror.sh /usr/local/sbin/lab-mirror"
    --customize-hook='chmod 755 "$1/usr/local/sbin/lab-mirror"')
  as_root mmdebstrap "${options[@]}" bookworm "$tar" ${KUBE_HA_DEBIAN_MIRROR:+"$KUBE_HA_DEBIAN_MIRROR"} \
    >"$tar.log" 2>&1 ||
    die "mmdebstrap failed, its last line: $(tail -n 1 "$tar.log")" \
      "read $tar.log; is a Debian mirror reachable (KUBE_HA_DEBIAN_MIRROR)?"
}

from_containerfile() { # from_containerfile TAR: the same content, flattened
  local tar=$1 container
  engine build -q -t "$LAB_IMAGE:build" "$here" >"$tar.log" 2>&1 ||
    die "image build failed, its last line: $(tail -n 1 "$tar.log")" \
      "read $tar.log, or install mmdebstrap (lab/host.sh install)"
  container=$(engine create "$LAB_IMAGE:build" true)
  engine export -o "$tar" "$container"
  engine rm "$container" >/dev/null
  engine rmi "$LAB_IMAGE:build" >/dev/null
}

forget_others() { # forget_others KEY: images and archives of other keys, but for those in use
  local tag
  while read -r tag; do
    engine rmi "$LAB_IMAGE:$tag" >/dev/null 2>&1 || true # a machine still runs from it
  done < <(engine images --format '{{.Tag}}' "$LAB_IMAGE" | grep -vxE "$1|current|<none>")
  find "$KUBE_HA_CACHE/image" -maxdepth 1 -name '*.tar' ! -name "$1.tar" ! -name '.*' -delete
}

main() {
  local key tar new
  key=$(image_key)
  tar=$KUBE_HA_CACHE/image/$key.tar
  mkdir -p "${tar%/*}"
  if ! engine image inspect "$LAB_IMAGE:$key" >/dev/null 2>&1; then
    if [[ ! -f $tar ]]; then
      say "building the machine image $key (1 to 2 min)"
      new=${tar%/*}/.$key.$$.tar
      # shellcheck disable=SC2064  # the value of now
      trap "rm -f '$new'" EXIT
      if command -v mmdebstrap >/dev/null; then bootstrap "$new"; else from_containerfile "$new"; fi
      as_root chmod 644 "$new"
      mv -f "$new" "$tar"
      rm -f "$new.log"
    fi
    engine import "$tar" "$LAB_IMAGE:$key" >/dev/null 2>&1 ||
      die "$ENGINE could not import $tar" "remove that file and run again: it may be cut off"
    say "machine image $key: done in $SECONDS s"
  fi
  engine tag "$LAB_IMAGE:$key" "$LAB_IMAGE:current"
  forget_others "$key"
}
main </dev/null
