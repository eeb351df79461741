# shellcheck shell=bash
# How a snapshot is packed for where others can write: compressed, encrypted, and sealed by the stack's key. Only
# definitions; snapshot.sh sources it. The last line of what is encrypted says
# "kube-ha-snapshot:1:<name>:<revision>:<HMAC-SHA256 of that and of all before it>": without the key nobody makes one,
# changes it, or gives it another name. operations/etcd_snapshots/snapshot_seal.py reads it.
# Reads $PKI/backup.key: a passphrase of hexadecimal digits; the key of the seal follows from it by another way than
# that of the cipher.
SEAL=kube-ha-snapshot:1

# bytes HEX: those bytes
bytes() {
  local i text=""
  for ((i = 0; i < ${#1}; i += 2)); do text+="\\x${1:i:2}"; done
  printf '%b' "$text"
}
# hmac KEY: HMAC-SHA256 of stdin; key (up to 64 bytes) and result in hexadecimal digits. openssl takes a key in its
# arguments alone, which everybody on the machine can read; these are functions, and arguments of theirs are nobody's.
hmac() {
  local key=$1 inner="" outer="" byte digits i sum
  for ((i = 0; i < 128; i += 2)); do
    digits=${key:i:2}
    byte=$((16#${digits:-00}))
    printf -v digits '%02x' $((byte ^ 0x36))
    inner+=$digits
    printf -v digits '%02x' $((byte ^ 0x5c))
    outer+=$digits
  done
  sum=$({ bytes "$inner" && cat; } | sha256sum)
  sum=$(bytes "$outer${sum%% *}" | sha256sum)
  printf '%s\n' "${sum%% *}"
}

seal() { # seal FILE NAME REVISION: the last line is added
  local key sum
  key=$(head -n 1 "$PKI/backup.key" | tr -d '\n' | od -An -v -tx1 | tr -d ' \n')
  key=$(printf '%s' "kube-ha snapshot seal" | hmac "$key")
  sum=$({ printf '%s:%s:%s\n' "$SEAL" "$2" "$3" && cat "$1"; } | hmac "$key")
  printf '\n%s:%s:%s:%s\n' "$SEAL" "$2" "$3" "$sum" >>"$1"
}

# What cannot be opened again is not a backup.
compress() { # compress FILE INTO
  (umask 077 && gzip -n3c "$1" >"$2")
  gzip -dc "$2" | cmp -s - "$1" ||
    die "the compressed snapshot does not open again" "try again; if it stays, look at the disk and the memory of $NODE"
}
encrypt() { # encrypt FILE INTO: compressed before, for nothing makes it smaller later
  [[ -s $PKI/backup.key ]] || die "there is no $PKI/backup.key to encrypt with" "run pulumi up, which places it"
  (umask 077 &&
    gzip -n3c "$1" | openssl enc -aes-256-cbc -pbkdf2 -iter 10000 -salt -pass "file:$PKI/backup.key" -out "$2")
  openssl enc -d -aes-256-cbc -pbkdf2 -iter 10000 -pass "file:$PKI/backup.key" -in "$2" | gzip -dc | cmp -s - "$1" ||
    die "the encrypted snapshot does not open again" \
      "try again; if it stays, report it, and set etcd.backup.encrypt: false"
}
