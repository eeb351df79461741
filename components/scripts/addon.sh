# shellcheck shell=bash
# Makes the cluster hold one add-on's objects. Values: NAME, MANIFEST, and PRUNED: the kind of those that are deleted
# when it has them no more, if there is one. Runs on a master.
main() {
  own
  rm -rf /etc/kube-ha/addons # copies of an earlier version: another master may have applied newer ones since
  # Server-side, as the owner of these fields: what others added to the objects stays.
  wait_for 60 "add-on $NAME applied" apply
  if [[ -n ${PRUNED:-} ]]; then prune; fi
  finish
}
apply() { kubectl_admin apply --server-side --force-conflicts --field-manager kube-ha -f - <<<"$MANIFEST"; }
# Those that carry the mark of this add-on: what others have made of that kind is theirs.
prune() {
  local wanted there name
  wanted=$(kubectl_admin create --dry-run=client -o name -f - <<<"$MANIFEST")
  there=$(kubectl_admin get "$PRUNED" -l "kube-ha.io/part-of=$NAME" -o name)
  while read -r name; do
    if [[ -n $name && $'\n'$wanted$'\n' != *$'\n'"$name"$'\n'* ]]; then
      kubectl_admin delete --ignore-not-found --wait=false -- "$name" >/dev/null
      changes=$((changes + 1))
      log "deleted $name, which has left add-on $NAME"
    fi
  done <<<"$there"
}
