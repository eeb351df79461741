# shellcheck shell=bash
# What cloud-init runs on every boot of a machine in a cloud, before anybody can log in: before it makes users and host keys.
# Makes true: /var/lib/kube-ha is the disk that is kept when the machine is replaced, known by its label; pods cannot read the machine's user data.
# Values: DISKS (paths that the disk may have, empty: there is none), POD_METADATA (1: pods may read it).
LABEL=kube-ha
AT=/var/lib/kube-ha

# The provider's metadata service, not its name server, which has the same address at Google. What the machine sends itself has no other way in than lo;
# all else is forwarded for pods, whatever interface their network gives them. systemd-networkd takes away rules of others whenever it starts, as after
# an update of its package, but none of protocol kernel.
close_metadata() {
  local service=(to 169.254.169.254 ipproto tcp dport 80)
  [[ $(ip rule show) == *"${service[*]} prohibit"* ]] ||
    { ip rule add pref 50 iif lo "${service[@]}" protocol kernel lookup main && ip rule add pref 51 "${service[@]}" protocol kernel prohibit; }
}

find_disk() {
  local path
  for path in $DISKS; do
    if [[ -b $path ]]; then
      readlink -f "$path"
      return
    fi
  done
  return 1
}

# Whether nobody has ever written to it. A damaged superblock, a disk that cannot be read and one with two signatures have no label either, and making a
# file system asks nobody.
is_new() { # is_new DISK
  local said=0 size
  if grep -q "^LABEL=$LABEL " /etc/fstab || [[ -e /etc/systemd/system/etcd.service ]]; then
    echo "$1 has no label $LABEL, and this machine has had its disk: nothing is written to it. Look at it from here (blkid -p $1; e2fsck -n $1), or attach the right one" >&2
    return 1
  fi
  blkid -p "$1" >&2 || said=$?
  size=$(blockdev --getsize64 "$1")
  if ((said != 2)) || ! cmp -s -n 1048576 "$1" /dev/zero || ! cmp -s -n 1048576 -i "$((size - 1048576)):0" "$1" /dev/zero; then
    echo "$1 holds something that is not ours (blkid ends with $said; only a disk of zeros is made ready): nothing is written to it. Look at it from here, or attach the right one" >&2
    return 1
  fi
}

mount_disk() {
  local disk end=$((SECONDS + 300))
  # It is attached while the machine boots.
  until disk=$(find_disk); do
    ((SECONDS < end)) || {
      echo "none of $DISKS came within 300 s" >&2
      return 1
    }
    sleep 1
  done
  if [[ $(blkid -p -o value -s LABEL "$disk") != "$LABEL" ]]; then
    if ! is_new "$disk"; then return 1; fi
    mkfs.ext4 -q -L "$LABEL" "$disk"
  fi
  mkdir -p "$AT"
  if ! grep -q "^LABEL=$LABEL " /etc/fstab; then
    mount -o noatime "$disk" "$AT"
    # Marks of what an older machine had on its boot disk.
    rm -f "$AT"/state/*.{artefact,files,sum}
    printf 'LABEL=%s %s ext4 noatime,nofail 0 2\n' "$LABEL" "$AT" >>/etc/fstab
  fi
  mountpoint -q "$AT" || mount "$AT"
}

main() {
  # || true: a kernel without such rules; the disk matters more
  if [[ -z $POD_METADATA ]]; then close_metadata || true; fi
  if [[ -n $DISKS ]]; then mount_disk; fi
}
