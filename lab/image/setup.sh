#!/bin/bash
# Runs as root inside the new file system, after the packages are installed: makes it a machine that boots to sshd and
# nothing else.
set -euo pipefail
shopt -s inherit_errexit

mask_units() {
  # logind, udev and gettys have no devices to serve in a container. The other four are packages of the image that must
  # not run before somebody configured them.
  systemctl mask \
    getty@tty1.service console-getty.service systemd-logind.service systemd-udevd.service \
    systemd-udev-trigger.service systemd-udevd-control.socket systemd-udevd-kernel.socket \
    apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer fstrim.timer \
    nginx.service docker-registry.service >/dev/null 2>&1
  # Disabled, not masked: node scripts enable these two when they have written the configuration.
  systemctl disable haproxy.service keepalived.service >/dev/null 2>&1
  rm -f /etc/nginx/sites-enabled/default
}

configure_sshd() {
  install -d -m 755 /etc/ssh/sshd_config.d /etc/systemd/system/ssh.service.d
  cat >/etc/ssh/sshd_config.d/lab.conf <<'CONF'
# Only the key that the stack made is offered, so only that one can be pinned.
HostKey /etc/ssh/ssh_host_ed25519_key
# One file for every user; a user's own is read as well.
AuthorizedKeysFile /etc/ssh/lab_authorized_keys .ssh/authorized_keys
PasswordAuthentication no
PermitRootLogin prohibit-password
UseDNS no
# A stack opens many sessions at once and keeps each of them until it ends.
MaxStartups 100:30:200
MaxSessions 100
CONF
  cat >/etc/systemd/system/ssh.service.d/lab.conf <<'CONF'
[Unit]
# Before this unit has run, only root may log in: an sshd that answers shall mean that anybody can.
After=systemd-user-sessions.service
CONF
  rm -f /etc/ssh/ssh_host_*
  systemctl enable ssh.service >/dev/null 2>&1
}

add_admin() { # the user of adopted machines: no root login, but sudo
  useradd --create-home --shell /bin/bash --uid 1000 admin
  echo 'admin ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/admin
  chmod 440 /etc/sudoers.d/admin
  install -d -m 700 /root/.ssh
  install -d -m 700 -o admin -g admin /home/admin/.ssh
}

forget_identity() {
  # Empty, not absent: systemd then writes a new one on each machine's first boot.
  : >/etc/machine-id
  : >/etc/hostname # not removed: where an engine runs this script, the file is a mount
  rm -f /var/lib/dbus/machine-id
  rm -rf /var/lib/apt/lists/* /var/cache/apt/archives/*.deb /var/log/apt /var/log/dpkg.log
}

main() {
  mask_units
  configure_sshd
  add_admin
  # containerd stops when this directory goes away, so it is there from the start.
  install -d -m 755 /etc/cni/net.d
  install -d -m 755 /var/lib/kube-ha
  systemctl set-default multi-user.target >/dev/null 2>&1
  forget_identity
}
main
