# shellcheck shell=bash
# Makes this machine end TLS for what runs in the cluster, at the virtual IP: a HAProxy of its own. New certificates and
# another list of nodes are a reload, which ends no connection.
# Variables: INGRESS_CFG, INGRESS_UNIT, PEMS (names of the files with certificate and key), CERTIFICATES (hash of those
#   that are there: a new one makes this phase run).
# Changes: kube-ha-ingress.service and /etc/haproxy/ingress.cfg. The certificates come by phase pki, before this one.
CONFIG=$ROOT/etc/haproxy/ingress.cfg
UNIT=$ROOT/etc/systemd/system/kube-ha-ingress.service
FOLDER=$ROOT/etc/kube-ha/ingress

# HAProxy takes every file of the folder, so those that left the config must not stay in it.
drop_others() {
  local file
  for file in "$FOLDER"/*.pem; do
    if [[ " $PEMS " == *" ${file##*/} "* || ! -e $file ]]; then continue; fi
    rm -f "$file"
    forget_keys "$file"
    changes=$((changes + 1))
    log "removed $file"
  done
}

main() {
  local answer name new=${CONFIG%/*}/.ingress.cfg.new files=()
  own
  for name in $PEMS; do
    [[ -s $FOLDER/$name ]] ||
      die "certificate $FOLDER/$name is missing" "raise converge.generation and run pulumi up again"
    files+=("$FOLDER/$name")
  done
  drop_others
  mkdir -p "${CONFIG%/*}"
  printf '%s\n' "$INGRESS_CFG" >"$new"
  answer=$(haproxy -c -f "$new" 2>&1) ||
    die "HAProxy refuses its new configuration, the running one stays: $(tail -n 3 <<<"$answer")" \
      "see the certificates in frontDoors.ingress, or report this configuration: $new"
  put 644 "$UNIT" <<<"$INGRESS_UNIT"
  put 644 "$CONFIG" <"$new"
  rm -f "$new"
  settle reload kube-ha-ingress.service "$CONFIG" "$UNIT" "${files[@]}"
  finish
}
