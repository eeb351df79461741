# shellcheck shell=bash
# What cloud-init runs on every boot of a machine in a cloud, before anybody can log in: before it makes users and host keys.
# Makes true: /var/lib/kube-ha is the disk that is kept when the machine is replaced, known by its label; pods cannot read the machine's user data.
# Values: DISKS (paths that the disk may have, empty: there is none).
LABEL=kube-ha
AT=/var/lib/kube-ha

# The provider's metadata service, not its name server, which has the same address at Google.
close_metadata() {
  [[ $(ip rule show) == *'to 169.254.169.254 iif cni0'* ]] ||
    ip rule add iif cni0 to 169.254.169.254 ipproto tcp dport 80 prohibit
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
    if blkid -p "$disk"; then
      echo "$disk holds something that is not ours" >&2
      return 1
    fi
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
  close_metadata || true # a kernel without such rules; the disk matters more
  if [[ -n $DISKS ]]; then mount_disk; fi
}
