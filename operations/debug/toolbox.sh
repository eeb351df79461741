# shellcheck shell=bash
# On a node, as root, in a mount namespace of its own: the tools of an image where no pod can begin.
# Without kubelet and API server; without containerd, or where it cannot have the image, the machine's own programs.
#   IMAGE        reference, as containerd has it; empty: the machine's own programs
#   COMMAND      for a shell; empty: a shell itself
#   LIMIT_S      seconds after which it ends
#   ASKED_BY     who says to be at the other end, for the journal
#   ENVIRONMENT  words NAME=value, quoted
# All that is mounted goes with the namespace; the snapshot goes with this shell, or with its lease.
set -euo pipefail

REGISTRIES=/etc/containerd/certs.d
RUN=${RUN:-/run/kube-ha-debug}
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

say() { printf '%s\n' "$1" >&2; }

last_words() { # last_words FILE: of a program that failed
  tail -n 1 "$1" | tr -cd '[:print:]' | tail -c 300
}

# Makes the image's file system $ROOTFS; else says in $WHY why there is none.
mounted() {
  local answer=$RUN/answer.$$
  ROOTFS=$RUN/$$ WHY=""
  [[ -n $IMAGE ]] || { WHY="it is not a node of Kubernetes" && return 1; }
  mkdir -p "$ROOTFS"
  if ! ctr --namespace k8s.io images ls --quiet 2>"$answer" | grep -qxF -- "$IMAGE"; then
    if ! timeout 300 ctr --namespace k8s.io images pull --hosts-dir "$REGISTRIES" -- "$IMAGE" \
      >/dev/null 2>"$answer"; then
      WHY="containerd does not have $IMAGE: $(last_words "$answer")"
    fi
  fi
  if [[ -z $WHY ]] && ! timeout 60 ctr --namespace k8s.io images mount --rw --expiration "$((LIMIT_S + 60))s" -- \
    "$IMAGE" "$ROOTFS" >/dev/null 2>"$answer"; then
    WHY="containerd does not mount $IMAGE: $(last_words "$answer")"
  fi
  rm -f "$answer"
  [[ -z $WHY ]]
}

furnished() { # the machine around it: devices, processes, disk
  local place
  mkdir -p "$ROOTFS"/{dev,proc,sys,host,run/containerd,etc,tmp}
  for place in dev proc sys run/containerd; do
    if [[ -d /$place ]]; then mount --rbind "/$place" "$ROOTFS/$place"; fi
  done
  mount --rbind / "$ROOTFS/host"
  for place in etc/resolv.conf etc/hosts; do
    if [[ -f /$place ]]; then
      # An image's own may be a link that leads out of it.
      rm -f "${ROOTFS:?}/$place"
      cp -L "/$place" "$ROOTFS/$place"
    fi
  done
}

left() {
  # What was bound would keep it busy; all of it is in this namespace alone.
  umount --recursive --lazy "$ROOTFS" 2>/dev/null || true # never mounted
  # Without containerd its lease ends.
  timeout 20 ctr --namespace k8s.io images unmount --rm -- "$ROOTFS" >/dev/null 2>&1 || true
  rmdir "$ROOTFS" "$RUN" 2>/dev/null || true # another one is there
}

main() {
  local status=0 run=()
  logger -t kube-ha-debug -- "asked by $ASKED_BY: ${COMMAND:-a shell}" || true # no journal
  trap left EXIT
  trap 'exit 129' HUP
  trap 'exit 143' TERM
  if mounted; then
    furnished
    declare -a given="($ENVIRONMENT)"
    # shellcheck disable=SC2154 # declared above
    run=(chroot "$ROOTFS" env -i "TERM=${TERM:-dumb}" HOME=/root "${given[@]}")
  else
    say "the machine's own programs: $WHY"
  fi
  # shellcheck disable=SC2016 # of that shell
  if [[ -n $COMMAND ]]; then
    run+=(sh -c 's=$(command -v bash || echo sh); exec "$s" -c "$1"' sh "$COMMAND")
  else
    run+=(sh -c 's=$(command -v bash || echo sh); exec "$s"')
  fi
  timeout --foreground --kill-after 5 "$LIMIT_S" "${run[@]}" || status=$?
  exit "$status"
}
