# shellcheck shell=bash
# Makes the cluster hold one add-on's objects. Values: NAME, MANIFEST. Runs on a master.
main() {
  own
  rm -rf /etc/kube-ha/addons # copies of an earlier version: another master may have applied newer ones since
  # Server-side, as the owner of these fields: what others added to the objects stays.
  wait_for 60 "add-on $NAME applied" apply
  finish
}
apply() { kubectl_admin apply --server-side --force-conflicts --field-manager kube-ha -f - <<<"$MANIFEST"; }
