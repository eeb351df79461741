#!/bin/bash
# What this computer needs to build artefacts and to run a lab.
#   check    lists everything that is missing, each with the command that fixes it; exit 1 if any
#   install  fixes what can be fixed without a question (Debian packages, sysctl, modules), then checks
# With `tests` behind the verb also what only tests need.
set -euo pipefail
shopt -s inherit_errexit
# shellcheck source=lab/engine.sh
source "$(dirname "${BASH_SOURCE[0]}")/engine.sh"

# package:command that proves it. runc beside podman: crun refuses hosts with both cgroup versions.
# libc6-dev and libseccomp-dev are headers of runc, the one artefact that is built with cgo.
TOOLS=(skopeo:skopeo docker-registry:docker-registry mmdebstrap:mmdebstrap
  debian-archive-keyring:/usr/share/keyrings/debian-archive-keyring.gpg
  openssh-client:ssh-keygen jq:jq curl:curl gcc:gcc pkg-config:pkg-config
  libc6-dev:/usr/include/stdlib.h libseccomp-dev:/usr/include/seccomp.h
  kmod:modprobe procps:sysctl tar:tar)
ENGINE_TOOLS=(podman:podman runc:runc netavark:/usr/lib/podman/netavark
  aardvark-dns:/usr/lib/podman/aardvark-dns containernetworking-plugins:/usr/lib/cni/bridge
  iptables:iptables)
# Real programs that tests run; their services neither start nor are enabled.
TEST_TOOLS=(openssh-server:/usr/sbin/sshd haproxy:haproxy nftables:nft)
WITH_TESTS=
# Of these, kernels without loadable modules have what they have; a missing one shows up in preflight.
MODULES=(overlay br_netfilter nf_conntrack vxlan ip_tables nf_tables)
INOTIFY_INSTANCES=8192 # systemd and kubelet take about 100 a machine, and all machines share the limit
MEMORY_MIB=6000        # 3 masters and 2 workers use 3 GB, a build as much again
BUILD_MIB=17000        # what building everything leaves in the cache: Go's own caches 14 GB, then artefacts
MACHINES_MIB=8000      # machines of a lab 7 GB

problems=0
missing() { # missing WHAT DO
  printf 'missing  %s\n    do:  %s\n' "$1" "$2"
  problems=$((problems + 1))
}

present() { # present COMMAND|PATH
  # sbin is not on everybody's PATH.
  if [[ $1 == /* ]]; then [[ -e $1 ]]; else PATH=$PATH:/usr/sbin:/sbin command -v "$1" >/dev/null; fi
}

# Without a live docker the engine to install is podman.
wanted_tools() {
  printf '%s\n' "${TOOLS[@]}"
  if [[ $(engine_name || echo podman) == podman ]]; then printf '%s\n' "${ENGINE_TOOLS[@]}"; fi
  if [[ -n $WITH_TESTS ]]; then printf '%s\n' "${TEST_TOOLS[@]}"; fi
}

missing_packages() {
  local tool
  while read -r tool; do
    present "${tool#*:}" || echo "${tool%%:*}"
  done < <(wanted_tools)
}

is_root() { ((EUID == 0)) || sudo -n true 2>/dev/null; }

inotify_instances() { cat /proc/sys/fs/inotify/max_user_instances; }

# What an earlier set-up left in the cache is not needed again.
check_disk() {
  local free cached needed
  mkdir -p "$KUBE_HA_CACHE"
  free=$(df --output=avail -BM "$KUBE_HA_CACHE" | tail -n 1 | tr -dc 0-9)
  ((free < MACHINES_MIB + BUILD_MIB)) || return 0
  cached=$(du -sm "$KUBE_HA_CACHE" | cut -f 1)
  needed=$((MACHINES_MIB + (cached < BUILD_MIB ? BUILD_MIB - cached : 0)))
  ((free >= needed)) ||
    missing "disk: $free MiB free at $KUBE_HA_CACHE, needed $needed" "free some, or set KUBE_HA_CACHE"
}

check_system() {
  local memory
  [[ $(uname -s) == Linux ]] || missing "Linux (this is $(uname -s))" "use a Linux computer or a virtual machine"
  [[ $(uname -m) =~ ^(x86_64|aarch64)$ ]] ||
    missing "a processor of amd64 or arm64 (this is $(uname -m))" "use another computer"
  is_root || missing "root: lab machines are privileged containers" "run as root, or allow sudo without password"
  memory=$(awk '/MemTotal/ {print int($2 / 1024)}' /proc/meminfo)
  ((memory >= MEMORY_MIB)) ||
    missing "memory: $memory MiB, a lab of 3+2 needs $MEMORY_MIB" "give this computer more, or lower pools.*.count"
  check_disk
  (($(inotify_instances) >= INOTIFY_INSTANCES)) ||
    missing "inotify instances: $(inotify_instances), needed $INOTIFY_INSTANCES" \
      "sysctl -w fs.inotify.max_user_instances=$INOTIFY_INSTANCES"
}

check_tools() {
  local packages
  mapfile -t packages < <(missing_packages)
  ((${#packages[@]} == 0)) ||
    missing "packages: ${packages[*]}" "apt-get install ${packages[*]}   (other systems: their packages of these)"
  # Not counted: where upstream's releases can be reached nothing is built.
  command -v go >/dev/null || echo "note     no Go here: artefacts can be downloaded, not built"
  if ! engine_name >/dev/null; then
    missing "a container engine" "apt-get install podman runc, or start docker"
  elif ! engine info >/dev/null 2>&1; then
    missing "an answer from $(engine_name): $(engine info 2>&1 | tail -n 1)" "$(engine_name) info"
  fi
}

check() {
  check_system
  check_tools
  if ((problems)); then
    printf '%d missing; lab/host.sh install fixes what it can\n' "$problems"
    exit 1
  fi
  echo "this computer can run a lab ($(engine_name))"
}

install_packages() {
  local packages
  mapfile -t packages < <(missing_packages)
  ((${#packages[@]})) || return 0
  command -v apt-get >/dev/null || return 0 # check names them
  printf '%s host    installing %s\n' "$(date +%T)" "${packages[*]}"
  # Services of fresh packages must not start: docker-registry would take port 5000 of this computer.
  hold_services
  # old lists may do
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 update >/dev/null || true
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 install -y \
    --no-install-recommends "${packages[@]}" </dev/null >"$KUBE_HA_CACHE/apt.log" 2>&1 ||
    die "apt-get failed: $(tail -n 1 "$KUBE_HA_CACHE/apt.log")" "read $KUBE_HA_CACHE/apt.log, then run it by hand"
  leave_disabled "${packages[@]}"
}

# A package that came for its program must not open a port at the next boot.
leave_disabled() {
  local package unit
  for package in "$@"; do
    for unit in ssh:openssh-server haproxy:haproxy docker-registry:docker-registry; do
      # no systemd here
      if [[ ${unit#*:} == "$package" ]]; then as_root systemctl -q disable "${unit%%:*}" 2>/dev/null || true; fi
    done
  done
}

# Debian asks this file before it starts a service at installation; 101 means no. An existing one is the administrator's
# and stays, unless it carries our mark: left by a run that was killed.
POLICY=/usr/sbin/policy-rc.d
POLICY_MARK='# lab/host.sh of kube-ha, for the time of one installation'
hold_services() {
  if [[ -e $POLICY ]] && ! grep -qxF "$POLICY_MARK" "$POLICY"; then return; fi
  trap release_services EXIT
  printf '#!/bin/sh\n%s\nexit 101\n' "$POLICY_MARK" | as_root install -m 755 /dev/stdin "$POLICY"
}

release_services() { # also what a killed run left, which would stop every service start on this computer
  if grep -qxF "$POLICY_MARK" "$POLICY" 2>/dev/null; then as_root rm -f "$POLICY"; fi
}

install() {
  local module
  mkdir -p "$KUBE_HA_CACHE"
  if ! is_root; then check; fi
  release_services
  install_packages
  if (($(inotify_instances) < INOTIFY_INSTANCES)); then
    as_root sysctl -qw "fs.inotify.max_user_instances=$INOTIFY_INSTANCES" || true # check names it
  fi
  for module in "${MODULES[@]}"; do
    as_root modprobe -q "$module" 2>/dev/null || true # built in, or not to be had
  done
  check
}

if [[ ${2:-} == tests ]]; then WITH_TESTS=1; fi
case ${1:-} in
  check | install) "$1" ;;
  *) die "unknown verb '${1:-}'" "lab/host.sh check, or lab/host.sh install" ;;
esac
