# shellcheck shell=bash
# Checks that this machine can become NODE, before anything is changed on it. Reports all problems at once.
# Variables:
#   ROLES, ADDRESS, ARCH
#   PORTS               must be free
#   PEERS               address:port, must be reachable
#   PEERS_ENOUGH        so many of them are enough; unset: all
#   SOURCES             URLs, must be reachable
#   PROXY_ENV           as node.sh
#   VXLAN               1: the kernel must have it
#   MODULES             words: others that the kernel must have; may be unset
#   FILESYSTEMS         words: kinds that the kernel must know, and / be mounted so that pods see them; may be unset
#   MOUNT               where a disk must be mounted; empty or unset: nowhere
#   VIP_INTERFACE       must have ADDRESS; empty: any
#   MTU                 bytes that the interface of ADDRESS must take; empty: any
#   MIN_CPUS, MIN_MEMORY_MIB, MIN_DISK_GIB
#   REPORT              1: check even if the machine is a node already
# Changes: nothing.
OS_RELEASE=/etc/os-release
problems=()
problem() { problems+=("$1"$'\n'"    do: $2"); }

# os_release KEY: its value, empty where the file does not say.
# shellcheck disable=SC1090 # a file of the machine
os_release() { (. "$OS_RELEASE" 2>/dev/null && printf %s "${!1:-}") || true; }

# Debian 12 is what tests run on. The others have the same: apt and dpkg, packages of these names, cgroup v2.
check_os() {
  local id version like why
  id=$(os_release ID) version=$(os_release VERSION_ID)
  case $id-$version in
    debian-12 | debian-13 | ubuntu-22.04 | ubuntu-24.04) return ;;
  esac
  like=" $id $(os_release ID_LIKE) "
  case $like in
    *" rhel "* | *" fedora "* | *" centos "*)
      why="of the Red Hat family: its packages are not of apt, and nothing here is written for SELinux and firewalld"
      ;;
    *" debian "* | *" ubuntu "*) why="a release, or a system made of one, that no phase was written for" ;;
    *) why="without the packages that phases install by apt" ;;
  esac
  problem "operating system is ${id:-unknown}${version:+ $version}, $why" \
    "use Debian 12 (tested), Debian 13, Ubuntu 22.04 or 24.04 (expected to work)"
}

check_system() {
  local machine free_kib memory_kib
  check_os
  if command -v dpkg >/dev/null; then
    machine=$(dpkg --print-architecture)
    [[ $machine == "$ARCH" ]] ||
      problem "architecture is $machine, the config says $ARCH" "set arch: $machine on this node's pool"
  fi
  [[ $EUID == 0 ]] || problem "commands run as uid $EUID" "let the SSH user run sudo without a password"
  [[ -d /run/systemd/system ]] || problem "systemd is not running" "boot the machine with systemd"
  (($(nproc) >= MIN_CPUS)) || problem "$(nproc) CPUs, $MIN_CPUS needed" "give the machine more CPUs"
  memory_kib=$(awk '/^MemTotal:/{print $2}' /proc/meminfo)
  ((memory_kib / 1024 >= MIN_MEMORY_MIB)) ||
    problem "$((memory_kib / 1024)) MiB of memory, $MIN_MEMORY_MIB needed" "give the machine more memory"
  free_kib=$(df -Pk /var/lib | awk 'NR==2{print $4}')
  ((free_kib / 1048576 >= MIN_DISK_GIB)) ||
    problem "$((free_kib / 1048576)) GiB free on /var/lib, $MIN_DISK_GIB needed" "free or add disk space"
  # Else etcd would write to the boot disk, and lose all of it with the machine.
  if [[ -n ${MOUNT:-} ]] && ! mountpoint -q "$MOUNT"; then
    problem "no disk is mounted at $MOUNT" "see what cloud-init says of it: less /var/log/cloud-init-output.log"
  fi
  [[ -s /etc/machine-id && $(</etc/machine-id) =~ ^[0-9a-f]{32}$ ]] ||
    problem "/etc/machine-id is not set" "run systemd-machine-id-setup"
  [[ $(hostname) =~ ^[a-zA-Z0-9]([-.a-zA-Z0-9]*[a-zA-Z0-9])?$ && $(hostname) != localhost ]] ||
    problem "hostname is \"$(hostname)\"" "run hostnamectl set-hostname $NODE"
  [[ $(ip -o -4 addr show) == *" $ADDRESS/"* ]] ||
    problem "address $ADDRESS is on no interface (found: $(ip -o -4 addr show scope global | awk '{print $4}' |
      xargs))" "correct the address in the config"
}

check_kernel() {
  local name
  if [[ $ROLES == etcd || $ROLES == loadbalancer ]]; then return; fi
  if [[ $CONTAINER != 1 && $(stat -fc %T /sys/fs/cgroup) != cgroup2fs ]]; then
    problem "cgroups are v1" "boot with systemd.unified_cgroup_hierarchy=1"
  fi
  if [[ $CONTAINER != 1 && $(swapon --noheadings --show=NAME | wc -l) != 0 ]]; then
    problem "swap is on: $(swapon --noheadings --show=NAME | xargs)" "run swapoff -a and take swap out of /etc/fstab"
  fi
  grep -qw overlay /proc/filesystems || modprobe -q overlay ||
    problem "no overlay file system in this kernel" "install a kernel with overlayfs"
  for name in br_netfilter nf_conntrack ${VXLAN:+vxlan} ${MODULES:-}; do
    # Containers share the host's kernel, where what is built in or loaded shows up below /sys/module.
    [[ -d /sys/module/$name ]] || modprobe -q "$name" || modinfo "$name" >/dev/null 2>&1 || [[ $CONTAINER == 1 ]] ||
      problem "kernel has no module $name" "install the full kernel package (linux-modules-extra on Ubuntu)"
  done
  for name in ${FILESYSTEMS:-}; do
    grep -qw "$name" /proc/filesystems ||
      problem "no file system $name in this kernel" "install a kernel that the pod network works with"
  done
  if [[ -n ${FILESYSTEMS:-} && $(findmnt -no PROPAGATION /) != *shared* ]]; then
    problem "what is mounted on this machine is not seen in its pods (/ is not shared)" \
      "mount --make-rshared /, at each boot; systemd does it where it is the first program of a machine"
  fi
  check_forwarding
}

# Ubuntu's own firewall, where it is on, drops what is forwarded: no port of the machine shows that.
check_forwarding() {
  if grep -qsi '^ENABLED=yes' "$ROOT/etc/ufw/ufw.conf" &&
    ! grep -qsi '^DEFAULT_FORWARD_POLICY="\?ACCEPT' "$ROOT/etc/default/ufw"; then
    problem "ufw drops what pods send to pods of other nodes (DEFAULT_FORWARD_POLICY)" \
      "set it to ACCEPT in /etc/default/ufw and run ufw reload, or run ufw disable"
  fi
}

check_network() {
  local port url answer date skew
  if [[ -n ${MTU:-} ]]; then check_mtu; fi # not among the values of an older first day
  if [[ -n ${VIP_INTERFACE:-} ]]; then
    answer=$(ip -o -4 addr show dev "$VIP_INTERFACE" 2>&1) || true # an unknown interface is an answer too
    [[ $answer == *" $ADDRESS/"* ]] ||
      problem "interface $VIP_INTERFACE does not have address $ADDRESS" \
        "write into frontDoors.vip.interface the one that has it: $(ip -o -4 addr show |
          awk -v address="$ADDRESS/" 'index($4, address) == 1 {print $2}' | xargs)"
  fi
  for port in $PORTS; do
    answer=$(ss -Hltnp "sport = :$port")
    [[ -z $answer ]] || problem "port $port is in use: ${answer##* }" "stop that service, or use another machine"
  done
  check_peers
  if ! command -v curl >/dev/null; then
    problem "curl is missing" "apt-get install -y curl"
    return
  fi
  for url in $SOURCES; do
    # the answer is looked at below
    answer=$(curl -sSIL --connect-timeout 5 --max-time 20 -o /dev/null -w '%{http_code}' "$url" 2>&1) || true
    [[ $answer == 2* ]] ||
      problem "$url answers: $answer" "see that the mirror (or upstream, by the proxy) is reachable from here"
  done
  url=${SOURCES%% *}
  if [[ -z $url ]]; then return; fi
  # || true: no Date header is not an answer about the clock, and an unreachable source has been reported above.
  date=$(curl -sSIL --max-time 10 "$url" 2>/dev/null | sed -n 's/^[Dd]ate: //p' | tail -1) || true
  if [[ -n $date ]]; then
    skew=$(($(date +%s) - $(date -d "$date" +%s)))
    ((skew >= -10 && skew <= 10)) ||
      problem "clock differs by $skew s from that of $url" "run a time service (chrony) on both"
  fi
}

# Of a cluster that lives most will do: one machine that is down must not keep others from joining.
check_peers() {
  local peer reached=0 silent="" limit=$((SECONDS + 30)) # machines of one update may start seconds apart
  for peer in $PEERS; do
    until dials "$peer"; do
      if ((SECONDS >= limit)); then
        silent+=" $peer"
        continue 2
      fi
      sleep 0.3
    done
    reached=$((reached + 1))
  done
  if [[ -z $silent ]]; then return; fi
  if ((reached >= ${PEERS_ENOUGH:-1000000})); then
    log "not reached:$silent; the others are, and will do"
    return
  fi
  for peer in $silent; do
    problem "machine ${peer%:*} does not answer on port ${peer##*:}" \
      "see that it runs and that no firewall stands between"
  done
}

# A load balancer dials API servers, and at first nobody listens there; one that lives may be restarting: a machine that
# refuses has been reached.
dials() { # dials ADDRESS:PORT
  local answer
  if answer=$(timeout 3 bash -c "</dev/tcp/${1%:*}/${1##*:}" 2>&1); then return; fi
  [[ ($ROLES == loadbalancer || -n ${PEERS_ENOUGH:-}) && $answer == *"Connection refused"* ]]
}

check_mtu() {
  local name mtu
  name=$(ip -o -4 addr show | awk -v address="$ADDRESS" 'index($4, address "/") == 1 {print $2; exit}')
  if [[ -z $name ]]; then return; fi # said by check_system
  mtu=$(ip -o link show dev "$name" | grep -oP ' mtu \K[0-9]+')
  ((mtu >= MTU)) ||
    problem "interface $name takes packets of $mtu bytes, pods need $MTU" \
      "raise its MTU, or lower network.mtu by $((MTU - mtu))"
}

# What other programs run here, and would lose when this machine becomes a node.
check_foreign() {
  local path
  if [[ $ROLES == etcd ]]; then return; fi
  for path in /etc/containerd/config.toml /var/lib/docker /var/lib/containerd/io.containerd.metadata.v1.bolt; do
    # What a load balancer does needs no runtime, and disturbs none.
    if [[ $ROLES == loadbalancer ]]; then break; fi
    # A machine that was released with its files has the runtime that we brought.
    if [[ -f $STATE/released && $path != */docker ]]; then continue; fi
    [[ ! -e $ROOT$path ]] ||
      problem "another container runtime is here ($path)" "use a clean machine, or remove that runtime and its data"
  done
  if [[ -n ${VIP_INTERFACE:-} && -s $ROOT/etc/keepalived/keepalived.conf ]] &&
    ! grep -q '^# kube-ha' "$ROOT/etc/keepalived/keepalived.conf"; then
    problem "keepalived serves something here already" \
      "move it to another machine: here it will hold the virtual IP of the API"
  fi
  if systemctl is-active -q haproxy && grep -Eq '^(listen|frontend)' /etc/haproxy/haproxy.cfg 2>/dev/null; then
    problem "HAProxy serves something here already" "move it to another machine: here it becomes the way to the API"
  fi
}

check_incarnation() {
  local here
  here=$(incarnation)
  if ((here > ${INCARNATION:-1})); then
    problem "machine is incarnation $here of $NODE, the config wants ${INCARNATION:-1}" \
      "set nodes.$NODE.generation to $here, or to $((here + 1)) to recreate it"
  elif ((here < ${INCARNATION:-1})); then
    log "this machine is incarnation $here of $NODE: it will be wiped, and becomes incarnation $INCARNATION"
  fi
}

main() {
  local text
  # What `make preflight` compares between machines.
  if [[ ${REPORT:-0} == 1 ]]; then
    printf 'facts %s %s %s\n' "$(cat /etc/machine-id)" "$(hostname)" "$(date +%s.%N)"
    printf 'os %s %s\n' "$(os_release ID)" "$(os_release VERSION_ID)"
  fi
  if [[ -f $STATE/owner && $(<"$STATE/owner") == "$CLUSTER $CLUSTER_ID $NODE" ]]; then
    check_incarnation
    if [[ ${REPORT:-0} != 1 && ${#problems[@]} == 0 && $(incarnation) == "${INCARNATION:-1}" ]]; then
      # Run again because the way to the machine changed, with the values of its first day: others may have left since.
      log "this machine is $NODE already"
      return
    fi
    PORTS="" # they are in use by ourselves
  elif [[ -s $STATE/owner ]]; then
    problem "machine belongs to \"$(<"$STATE/owner")\" (cluster, id, node)" \
      "release it there, or wipe it by hand: /usr/local/lib/kube-ha/leave"
  elif [[ -e $ROOT/etc/kubernetes/kubelet.conf || -d $HOME_DIR/etcd/member ]]; then
    problem "machine holds parts of some other cluster (/etc/kubernetes/kubelet.conf or $HOME_DIR/etcd)" \
      "use a clean machine, or clean this one by hand"
  else
    check_foreign
  fi
  check_system
  check_kernel
  check_network
  if ((${#problems[@]})); then
    trap - ERR
    printf 'ERROR %s (%s): %d problem(s), nothing was changed on this machine\n' "$NODE" "$ADDRESS" "${#problems[@]}"
    for text in "${problems[@]}"; do printf '  - %s\n' "$text"; done
    exit 1
  fi
  log "preflight passed"
}
