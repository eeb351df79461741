#!/bin/bash
# shellcheck disable=SC2153  # LAB, SUBNET, MACHINE ... are the environment's
# Labs on this computer: one network, one mirror and machines (containers with systemd and sshd).
# Every verb makes something so, and does nothing where it is so already. Values come by environment, secrets by stdin;
# stdout is one line. Containers, network and labels all carry the lab's name.
#
# LAB SUBNET BUNDLE          lab-up    network kube-ha-LAB; mirror at its second address: files on 8080, images on 5000
#   FROM BUNDLE                lab-serve mirrors of this checkout that serve the folder FROM serve BUNDLE from here on
#   LAB                        lab-start mirror and machines run again, as after a reboot of this computer
#   LAB                        lab-down  everything of that lab goes, machines too
#   LAB MACHINE ADDRESS        up        a machine that answers SSH (users root and admin, who may sudo)
#       [GENERATION]                     stdin: HOST_KEY='<OpenSSH private key>' AUTHORIZED_KEY='<line>'
# of another GENERATION (1) than the one that is there: a new one, with new volumes
#                                        (CONVERGE only makes the engine ask once more)
#   LAB MACHINE                down      the machine and its volumes
#   LAB MACHINE                kill start pause unpause     faults: a power cut, power, a stall
#                              list         machines of all labs
#                              purge        every lab made from this checkout goes, those of others stay;
#                                           with the last lab of this computer its machine images go too
set -euo pipefail
shopt -s inherit_errexit
# shellcheck source=lab/engine.sh
source "$(dirname "${BASH_SOURCE[0]}")/engine.sh"
CHECKOUT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)

need() { # need NAME...: these values, none of which may be more than a plain word, address or path
  local name
  for name in "$@"; do
    [[ ${!name:-} =~ ^[A-Za-z0-9./_-]+$ ]] ||
      die "$VERB needs $name, got '${!name:-}'" "see the head of lab/machine.sh"
  done
}

# The second address of the subnet, as in the plan: a subnet need not begin at .0.
mirror_address() {
  local a b c d
  IFS=./ read -r a b c d _ <<<"$SUBNET"
  echo "$a.$b.$c.$((d + 2))"
}

label() { # label CONTAINER KEY: its value; fails where there is no such container
  engine container inspect --format "{{index .Config.Labels \"kube-ha.$2\"}}" "$1" 2>/dev/null
}

state() { # state CONTAINER: running, paused, exited, created ...
  engine container inspect --format '{{.State.Status}}' "$1"
}

remove() { # remove CONTAINER...: at once and with its volumes; absent is fine
  local container
  for container in "$@"; do
    label "$container" lab >/dev/null || continue
    # A paused container takes no signal.
    engine unpause "$container" >/dev/null 2>&1 || true            # fails where it is not paused
    engine kill --signal KILL "$container" >/dev/null 2>&1 || true # fails where it does not run
    engine rm --force --volumes "$container" >/dev/null
  done
}

create() { # create NAME ADDRESS OPTION...: a container in the lab's network with the lab's label
  local name=$1 address=$2 files mac options=()
  shift 2
  # From the address: a rebuilt machine under an old address is reached at once, while its neighbours still have the
  # hardware address in their caches. Otherwise they wait about 10 s.
  # shellcheck disable=SC2086  # four words
  mac=$(printf '02:6b:%02x:%02x:%02x:%02x' ${address//./ })
  # The engine's default limits are higher than a host without CAP_SYS_RESOURCE can grant, and its containers then do
  # not start. 32768 processes is what podman itself is left with there.
  files=$(ulimit -Hn)
  if [[ $files == unlimited ]]; then files=1048576; fi
  # crun refuses hosts with both cgroup versions; docker's own default is runc.
  if [[ $ENGINE == podman ]]; then options=(--runtime runc --systemd=false); fi
  engine create --name "$name" --network "kube-ha-$LAB" --ip "$address" --mac-address "$mac" \
    --label "kube-ha.lab=$LAB" --label "kube-ha.checkout=$CHECKOUT" --ulimit "nofile=$files:$files" \
    --ulimit nproc=32768:32768 \
    --security-opt label=disable "${options[@]}" "$@" >/dev/null
}

# A lab of that name that another checkout made, and that still exists, is not taken over.
refuse_foreign_lab() {
  local owner
  owner=$(label "kube-ha-$LAB-mirror" checkout || true) # no lab, no owner
  if [[ -z $owner || $owner == "$CHECKOUT" || ! -d $owner ]]; then return; fi
  die "lab $LAB belongs to the checkout $owner" \
    "run make clean there, or give this stack another cluster name and subnet"
}

network_up() {
  local network=kube-ha-$LAB format='{{range .IPAM.Config}}{{.Subnet}}{{end}}' subnet='' options=() output
  if [[ $ENGINE == podman ]]; then format='{{range .Subnets}}{{.Subnet}}{{end}}'; fi
  if engine network inspect "$network" >/dev/null 2>&1; then
    subnet=$(engine network inspect --format "$format" "$network")
  fi
  if [[ $subnet == "$SUBNET" ]]; then return; fi
  if [[ -n $subnet ]]; then
    engine network rm "$network" >/dev/null ||
      die "lab $LAB has subnet $subnet, not $SUBNET, and is in use" \
        "pulumi destroy, or LAB=$LAB lab/machine.sh lab-down"
  fi
  # Names are the stack's business: without the engine's own resolver a machine asks this computer's.
  if [[ $ENGINE == podman ]]; then options=(--disable-dns); fi
  output=$(engine network create --subnet "$SUBNET" --label "kube-ha.lab=$LAB" \
    --label "kube-ha.checkout=$CHECKOUT" "${options[@]}" "$network" 2>&1) ||
    die "no network $network with subnet $SUBNET: ${output##*$'\n'}" "choose a free subnet for the lab's machines"
}

mirror_up() {
  local mirror=kube-ha-$LAB-mirror bundle image
  bundle=$(readlink -f "$BUNDLE")
  [[ -f $bundle/manifest.json ]] || die "no bundle at $BUNDLE" "make bundle"
  image=$(engine image inspect --format '{{.Id}}' "$LAB_IMAGE:current" 2>/dev/null) ||
    die "no machine image $LAB_IMAGE:current" "lab/image/build.sh"
  if [[ $(label "$mirror" made-from || true) != "$bundle $image $SUBNET" ]]; then
    remove "$mirror"
    create "$mirror" "$(mirror_address)" --label "kube-ha.made-from=$bundle $image $SUBNET" \
      --volume "$bundle:/bundle:ro" "$LAB_IMAGE:current" /usr/local/sbin/lab-mirror
  fi
  mirror_start
}

# What a link led to may be another bundle now: nodes ask the mirror for what that one has.
lab_serve() {
  local mirror from
  while read -r mirror; do
    if [[ -z $mirror ]]; then continue; fi
    read -r from _ SUBNET <<<"$(label "$mirror" made-from)"
    if [[ $from == "$FROM" ]]; then
      LAB=$(label "$mirror" lab)
      mirror_up
    fi
  done < <(engine ps --all --filter "label=kube-ha.checkout=$CHECKOUT" --filter label=kube-ha.made-from \
    --format '{{.Names}}')
}

mirror_start() {
  local mirror=kube-ha-$LAB-mirror
  engine start "$mirror" >/dev/null
  # Without --fail-early only the last address decides.
  poll 30 "mirror $mirror" "$ENGINE logs $mirror" engine exec "$mirror" \
    curl -fsS --fail-early -o /dev/null --max-time 2 http://127.0.0.1:8080/ -o /dev/null http://127.0.0.1:5000/v2/
}

poll() { # poll SECONDS WHAT DO COMMAND...: until COMMAND succeeds
  local end=$((SECONDS + $1)) limit=$1 what=$2 todo=$3 answer
  shift 3
  until answer=$("$@" 2>&1); do
    ((SECONDS < end)) || die "$what not ready in $limit s; last answer: ${answer:-none}" "$todo"
    sleep 0.1
  done
}

sshd_greets() {
  # shellcheck disable=SC2016  # the inner shell expands
  [[ $(timeout 2 bash -c 'exec 3<>"/dev/tcp/$0/22" && head -c 4 <&3' "$ADDRESS" 2>&1) == SSH- ]]
}

wait_for_sshd() {
  poll 60 "sshd of $MACHINE at $ADDRESS" "$ENGINE exec $CONTAINER journalctl -b -n 50" sshd_greets
}

machine_create() {
  local mounts=()
  # So that modprobe inside finds what this computer's kernel has.
  if [[ -d /lib/modules ]]; then mounts=(--volume /lib/modules:/lib/modules:ro); fi
  # Volumes: an overlay file system cannot be on the container's own overlay.
  # Mounts: what is mounted later is to be seen in pods that run. systemd sees to that at the boot of a machine, and not
  # in a container.
  # Restart: `systemctl reboot` ends the container, by a signal as any end of its init; one that was killed from outside
  # stays off.
  create "$CONTAINER" "$ADDRESS" --hostname "$MACHINE" --privileged --cgroupns private --restart on-failure \
    --label "kube-ha.made-from=${GENERATION:-1} $ADDRESS" --label "kube-ha.machine=$MACHINE" \
    --stop-signal SIGRTMIN+3 --env container="$ENGINE" --pids-limit -1 \
    "${mounts[@]}" \
    --volume /var/lib/containerd --volume /var/lib/kubelet --volume /var/lib/kube-ha \
    --tmpfs /run:exec,mode=755 --tmpfs /run/lock --tmpfs /tmp:exec,mode=1777 "$LAB_IMAGE:current" \
    sh -c 'mount --make-rshared / && exec /sbin/init'
}

put_keys() { # in memory only, and never in a command line
  local folder
  folder=$(mktemp -d -p /dev/shm)
  # shellcheck disable=SC2064  # the value of now
  trap "rm -rf '$folder'" EXIT
  install -d "$folder/etc/ssh"
  (umask 077 && printf '%s\n' "$HOST_KEY" >"$folder/etc/ssh/ssh_host_ed25519_key")
  printf '%s\n' "$AUTHORIZED_KEY" >"$folder/etc/ssh/lab_authorized_keys"
  tar -C "$folder" --owner=0 --group=0 -c etc/ssh/ssh_host_ed25519_key etc/ssh/lab_authorized_keys |
    engine cp - "$CONTAINER:/"
  rm -rf "$folder"
}

# docker's own resolver lives at a loopback address, which pods cannot reach.
give_resolver() {
  local source=/etc/resolv.conf
  if [[ -f /run/systemd/resolve/resolv.conf ]]; then source=/run/systemd/resolve/resolv.conf; fi
  engine exec -i "$CONTAINER" sh -c 'cat >/etc/resolv.conf' <"$source"
}

machine_up() {
  local HOST_KEY='' AUTHORIZED_KEY=''
  # shellcheck source=/dev/null
  source /dev/stdin
  [[ -n $HOST_KEY && -n $AUTHORIZED_KEY ]] ||
    die "up needs HOST_KEY and AUTHORIZED_KEY on stdin" "see the head of lab/machine.sh"
  if [[ $(label "$CONTAINER" made-from || true) != "${GENERATION:-1} $ADDRESS" ]]; then
    remove "$CONTAINER"
    machine_create
  fi
  put_keys
  case $(state "$CONTAINER") in
    running) engine exec "$CONTAINER" systemctl try-reload-or-restart ssh.service ;;
    paused) engine unpause "$CONTAINER" >/dev/null ;;
    *) engine start "$CONTAINER" >/dev/null ;;
  esac
  if [[ $ENGINE == docker ]]; then give_resolver; fi
  wait_for_sshd
  echo "machine $MACHINE $ADDRESS"
}

machine_start() {
  engine start "$CONTAINER" >/dev/null
  ADDRESS=$(label "$CONTAINER" made-from)
  ADDRESS=${ADDRESS#* } # after the generation
  wait_for_sshd
}

lab_start() {
  local machines
  label "kube-ha-$LAB-mirror" lab >/dev/null ||
    die "there is no lab $LAB" "lab/machine.sh list shows which there are; pulumi up makes one"
  mirror_start
  mapfile -t machines < <(engine ps --all --filter "label=kube-ha.lab=$LAB" --filter label=kube-ha.machine \
    --format '{{.Names}}')
  ((${#machines[@]} == 0)) || engine start "${machines[@]}" >/dev/null # all boot in parallel
  for CONTAINER in "${machines[@]}"; do
    MACHINE=${CONTAINER#"kube-ha-$LAB-"}
    machine_start
  done
  echo "lab $LAB runs: mirror and ${#machines[@]} machines"
}

lab_down() {
  local containers
  mapfile -t containers < <(engine ps --all --quiet --filter "label=kube-ha.lab=$LAB")
  remove "${containers[@]}"
  if engine network inspect "kube-ha-$LAB" >/dev/null 2>&1; then
    engine network rm "kube-ha-$LAB" >/dev/null
  fi
}

purge() {
  local containers networks
  mapfile -t containers < <(engine ps --all --quiet --filter "label=kube-ha.checkout=$CHECKOUT")
  remove "${containers[@]}"
  mapfile -t networks < <(engine network ls --quiet --filter "label=kube-ha.checkout=$CHECKOUT")
  if ((${#networks[@]})); then engine network rm "${networks[@]}" >/dev/null; fi
  forget_images
}

# The images are shared by all checkouts: a tag taken away under another's lab would stop its next machine.
forget_images() {
  local others image images
  others=$(engine ps --all --quiet --filter label=kube-ha.lab)
  if [[ -n $others ]]; then
    echo "machine images stay: another checkout's lab runs from them"
    return
  fi
  # The second one is what tests make of it for machines that boot as in a cloud.
  mapfile -t images < <(for image in "$LAB_IMAGE-cloud" "$LAB_IMAGE"; do
    engine images --format '{{.Repository}}:{{.Tag}}' "$image"
  done)
  if ((${#images[@]})); then
    engine rmi "${images[@]}" >/dev/null || echo "machine images stay: a container uses them"
  fi
}

lab_verb() {
  case $VERB in
    lab-up)
      need LAB SUBNET BUNDLE
      refuse_foreign_lab
      network_up
      mirror_up
      echo "mirror $(mirror_address)"
      ;;
    lab-serve)
      need FROM BUNDLE
      lab_serve
      ;;
    lab-start)
      need LAB
      lab_start
      ;;
    lab-down)
      need LAB
      lab_down
      ;;
    list) engine ps --all --filter label=kube-ha.lab --format '{{.Names}}  {{.Status}}' ;;
    purge) purge ;;
    *) die "unknown verb '$VERB'" "see the head of lab/machine.sh" ;;
  esac
}

machine_verb() {
  need LAB MACHINE
  CONTAINER=kube-ha-$LAB-$MACHINE
  case $VERB in
    up)
      need ADDRESS
      machine_up
      ;;
    down) remove "$CONTAINER" ;;
    kill) engine kill --signal KILL "$CONTAINER" >/dev/null ;;
    start)
      if [[ $MACHINE == mirror ]]; then mirror_start; else machine_start; fi
      ;;
    *) engine "$VERB" "$CONTAINER" >/dev/null ;;
  esac
}

main() {
  VERB=${1:-}
  ENGINE=$(engine_name) || die "no container engine: neither podman nor a running docker" "lab/host.sh install"
  case $VERB in
    up | down | kill | start | pause | unpause) machine_verb ;;
    *) lab_verb ;;
  esac
}
main "$@"
