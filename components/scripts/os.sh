# shellcheck shell=bash
# Packages of the operating system, brought up to date when the config says another word for them, and the reboot that
# they ask for. Only definitions; node.sh sources it. Needs update.sh, aside.sh, etcd-client.sh, wipe.sh and doors.sh.
# What serves steps aside first: pods are evicted, the API server drains, leases and etcd's leadership are handed over.
# A reboot ends the phase well: nobody reaches the machine by SSH until it is back, and then a unit continues with the
# very same phase, whether the engine is still there or not.
# Variables: OS_PACKAGES (the word; empty: nothing is updated), OS_REBOOT (if-needed, always, never), OS_HOLD (names of
#   packages that stay as they are). In $STATE: os (the word that is done), os.reboot ("word mark" of the boot that is
#   to end), os.held (packages that we hold).
UNITS=$ROOT/etc/systemd/system
SENTINEL=$ROOT/run/reboot-required
SSH_UNITS="ssh.socket sshd.socket ssh.service sshd.service"

# Which start of the machine this is. The id is that of the kernel, which containers share; the start of the first
# process is their own.
boot_mark() { printf '%s-%s\n' "$(</proc/sys/kernel/random/boot_id)" "$(awk '{print $22}' /proc/1/stat)"; }

# apt COMMAND...: what the system itself does with its packages is waited for. In the first minutes of a machine that is
# timers of its own; apt's option for it knows dpkg's lock alone, and that of the lists fails at once.
APT_WAIT_S=300
apt() {
  local end=$((SECONDS + APT_WAIT_S)) status told="" held
  while true; do
    status=0
    # Ubuntu's needrestart would restart services at the end of every installation: HAProxy, keepalived and networks
    # of a machine that serves, in no order.
    NEEDRESTART_SUSPEND=1 "$@" >"$STATE/apt.log" 2>&1 || status=$?
    held=$(grep -Em 1 'Could not get lock|Unable to (acquire|lock)|lock was locked by' "$STATE/apt.log") ||
      return "$status"
    if ((status == 0)); then return; fi
    if ((SECONDS >= end)); then
      die "another program works on packages since $APT_WAIT_S s: $held" \
        "see what it is (ps -fp of that process; systemctl list-jobs; journalctl -u apt-daily -u apt-daily-upgrade -u" \
        "unattended-upgrades), let it end, then run pulumi up again"
    fi
    if [[ -z $told ]]; then log "another program works on packages, it is waited for: $held"; fi
    told=1
    end_unheard
    sleep 2
  done
}
apt_said() { grep -v '^\s*$' "$STATE/apt.log" | tail -n 4 | paste -sd' '; }

os_update() {
  local done_word="" due=""
  hold_packages
  if [[ -f $STATE/os ]]; then done_word=$(<"$STATE/os"); fi
  if [[ -z $OS_PACKAGES || $done_word == "$OS_PACKAGES" ]]; then return; fi
  if ! has_rebooted; then
    find_packages
    due=$(upgradable)
    if [[ -n $due || -n $(reboot_reason) ]]; then update_packages "$due"; fi
  fi
  put 644 "$STATE/os" <<<"$OS_PACKAGES"
  rm -f "$STATE/os.reboot"
}

# Whoever looks for held packages asks apt-mark; those that somebody else holds stay held.
hold_packages() {
  local name held="" list=$STATE/os.held there
  if [[ -f $list ]]; then held=$(<"$list"); fi
  if [[ -z $OS_HOLD$held ]]; then return; fi
  for name in $held; do
    if [[ " $OS_HOLD " != *" $name "* ]]; then mark_package unhold "$name"; fi
  done
  held=" $(xargs <<<"$held") " there=$(apt-mark showhold)
  for name in $OS_HOLD; do
    # What is not installed cannot be updated either.
    if [[ $'\n'$there$'\n' != *$'\n'"$name"$'\n'* && $(package_status "$name") == installed ]]; then
      # before it is held: a run that is cut off must not forget it
      if [[ $held != *" $name "* ]]; then printf '%s\n' "$name" >>"$list"; fi
      mark_package hold "$name"
    fi
  done
  if [[ -f $list ]]; then
    held=$(sort -u "$list")
    for name in $held; do
      if [[ " $OS_HOLD " == *" $name "* ]]; then printf '%s\n' "$name"; fi
    done | put 644 "$list"
  fi
}
mark_package() { # mark_package hold|unhold NAME
  apt apt-mark -qq "$1" "$2" || die "apt-mark $1 $2 fails" "see os.hold, and dpkg --audit on $NODE"
  changes=$((changes + 1))
  log "$1 package $2"
}
package_status() { dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null || true; } # || true: absent is an answer

find_packages() {
  # An earlier run may have been cut off in the middle.
  apt timeout 600 dpkg --configure -a ||
    die "dpkg --configure -a: $(apt_said)" "see $STATE/apt.log, fix it by hand; nothing was updated yet"
  apt timeout 600 apt-get -qq -o APT::Update::Error-Mode=any update ||
    die "apt-get update: $(apt_said)" \
      "see that the package sources in /etc/apt are reachable; the node serves as before"
}
# Names of packages that would change. With new ones: a kernel comes as a package of another name.
upgradable() { apt-get -qq -s -o Debug::NoLocking=1 --with-new-pkgs upgrade | awk '$1 == "Inst" {print $2}'; }

# What asks for a reboot; nothing where nothing does. Debian's and Ubuntu's packages leave a mark, where something is
# installed that lets them; a kernel shows by itself.
reboot_reason() {
  local running newest
  if [[ $OS_REBOOT == never ]]; then return; fi
  if [[ -f $STATE/os.reboot && $(<"$STATE/os.reboot") == "$OS_PACKAGES "* ]]; then
    echo "an earlier run was about to reboot"
  elif [[ $OS_REBOOT == always ]]; then
    echo "os.reboot says so"
  elif [[ -e $SENTINEL ]]; then
    echo "${SENTINEL#"$ROOT"} is there"
  else
    running=$(uname -r)
    newest=$(compgen -G "$ROOT/boot/vmlinuz-*" | sort -V | tail -n 1) || true # a machine without is an answer
    newest=${newest##*/}
    if [[ -n $newest && $newest != "vmlinuz-$running" ]]; then
      echo "kernel $running runs, ${newest#vmlinuz-} is installed"
    fi
  fi
}
# The reboot that an earlier run of this phase began for this word has happened.
has_rebooted() {
  [[ -f $STATE/os.reboot &&
    $(<"$STATE/os.reboot") != "$OS_PACKAGES $(boot_mark)" && $(<"$STATE/os.reboot") == "$OS_PACKAGES "* ]]
}

update_packages() { # update_packages NAMES
  local why
  if serves; then step_aside; fi
  if [[ -n $1 ]]; then
    log "updating $(wc -w <<<"$1") package(s): $(xargs <<<"$1" | cut -c 1-300)"
    # Files of kube-ha stay; what a package starts again starts by its own script.
    apt timeout 3600 apt-get -qq -y -o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold \
      --with-new-pkgs upgrade ||
      die "apt-get upgrade: $(apt_said)" \
        "see $STATE/apt.log on $NODE; then run pulumi up again: it continues, and takes the node back into service at" \
        "its end"
    changes=$((changes + 1))
  fi
  why=$(reboot_reason)
  if [[ -z $why ]]; then return; fi
  if ! serves; then
    log "a reboot is due ($why), but this machine is not in the cluster yet: it is left to you"
    return
  fi
  reboot_now "$why"
}
# Whether anybody would miss this machine.
serves() { joined || etcd_has_data || { is_load_balancer && stands_by; }; }
step_aside() {
  if [[ $ROLES == *etcd* ]]; then etcd_successor >/dev/null; fi # first: it refuses where the quorum would be lost
  if [[ $ROLES == *master* ]]; then others_serve || true; fi    # refuses too; the only one has nobody to hand over to
  # before anything is taken out of service: the machine may die any moment
  keep_going_on
  if is_load_balancer; then
    hand_over_vip
    return
  fi
  if [[ $ROLES != etcd ]]; then begin_update "packages $OS_PACKAGES" intrusive; fi
  if [[ $ROLES == *master* ]]; then
    log "its control plane steps aside"
    put_aside kube-controller-manager
    put_aside kube-scheduler
    give_up_leases
    drain_api_server
  fi
}

# A unit that runs this very phase once more, at the next boot.
keep_going_on() {
  local unit=$UNITS/$RESUME
  put 600 "$STATE/resume.values" <<<"$VALUES"
  put 644 "$unit" <<<"[Unit]
Description=Goes on with an update of this node of kube-ha after a reboot
Wants=network-online.target
After=network-online.target containerd.service etcd.service haproxy.service kubelet.service
StartLimitIntervalSec=0

[Service]
Type=oneshot
Environment=HOME=/root
ExecStart=/bin/bash /usr/local/lib/kube-ha/run.sh node
StandardInput=file:$STATE/resume.values
TimeoutStartSec=90min
Restart=on-failure
RestartSec=15

[Install]
WantedBy=multi-user.target"
  systemctl daemon-reload
  systemctl enable -q "$RESUME"
}
gone_on() { # the phase has come to its end
  if [[ ! -e $UNITS/$RESUME ]]; then return; fi
  systemctl disable -q "$RESUME"
  # The unit last: other phases wait until it is gone. systemd is not told, for this may run in it: it would go on with
  # the usual time limits.
  rm -f "$STATE/resume.values" "$UNITS/$RESUME"
}

# The engine's next command on this machine must not begin before the reboot: it would be cut off, and count as failed.
# So no new login is taken from here on; this one continues to its end. Should the reboot fail, logins are taken again.
reboot_now() { # reboot_now WHY
  local unit open="" successor
  successor=$(etcd_successor) # once more: the update may have taken a while
  hand_over_etcd "$successor"
  if holds_vip && systemctl is-active -q keepalived; then
    systemctl stop keepalived # the address goes to another machine while this one still answers who comes by it
    sleep 2
  fi
  put 644 "$STATE/os.reboot" <<<"$OS_PACKAGES $(boot_mark)"
  sync
  log "rebooting: $1; this machine continues by itself afterwards (journalctl -u $RESUME)"
  for unit in $SSH_UNITS; do
    if systemctl is-active -q "$unit"; then open+=" $unit"; fi
  done
  # shellcheck disable=SC2016,SC2086 # of the inner shell; units are words
  systemd-run -q --collect --unit kube-ha-reboot /bin/bash -c \
    'flock -w 30 "$0" true; sleep 1; systemctl reboot && sleep 600; systemctl start "$@"' "$LOCK" $open ||
    die "the reboot cannot be scheduled" "see journalctl -b -u kube-ha-reboot on $NODE; then run pulumi up again"
  for unit in $open; do
    systemctl stop "$unit" ||
      die "$unit does not stop" "see journalctl -b -u $unit on $NODE; it reboots all the same: then run pulumi up again"
  done
  finish
  exit 0
}
