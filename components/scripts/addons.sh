# shellcheck shell=bash
# Tells which objects of add-ons differ from their manifests, and changes nothing: an API server says what applying them
# would change. `make drift` and `make status` run it over plain SSH, on a master. operations/observe/addons.py reads
# the lines: "differs" or "missing" and the object, as kubectl names it (GROUP.VERSION.KIND.NAMESPACE.NAME); "trouble"
# and what kubectl said; "kept", an add-on that this machine's timer puts back, the seconds since it last looked, and
# "good" or why it could not; "end"; tabs between.
# Variables: OWN, CONFIGURED (manifests, YAML documents; may be empty), SECRETS (lines "namespace name type key ..." of
#   Secrets that add-ons bring; may be unset)

# shellcheck source=addon-diff.sh disable=SC2154 # it travels whole
source "$here/addon-diff.sh"

compare() { # compare MANAGER MANIFESTS
  if [[ -n $2 ]]; then differing "$1" -f - <<<"$2"; fi
}

# What is in a Secret is not brought here. Whoever writes another value of a key, or deletes it, takes its field from
# who applied it: the owner of all keys says that each is as it was applied.
compare_secrets() {
  local namespace name type keys found
  while read -r namespace name type keys; do
    if [[ -z $namespace ]]; then continue; fi
    if ! found=$(timeout 60 kubectl --kubeconfig /etc/kubernetes/admin.conf --cache-dir /dev/null/none \
      --request-timeout 30s -n "$namespace" get --ignore-not-found --show-managed-fields -o json -- \
      secret "$name" 2>&1); then
      printf 'trouble\t%s\n' "$(tail -n 1 <<<"$found" | cut -c1-300)"
    elif [[ -z $found ]]; then
      printf 'missing\tv1.Secret.%s.%s\n' "$namespace" "$name"
    elif ! jq -e --arg type "$type" --arg keys "$keys" --arg manager kube-ha-addons '. as $is
      | [.metadata.managedFields[]? | select(.manager == $manager and .operation == "Apply")
        | .fieldsV1["f:data"] // {} | keys[]] as $owned
      | .type == $type and all($keys | split(" ")[]; . as $key | $owned | index("f:" + $key))' \
      <<<"$found" >/dev/null; then
      printf 'differs\tv1.Secret.%s.%s\n' "$namespace" "$name"
    fi
  done <<<"$SECRETS"
}

# As reconcile.sh left it.
tell_kept() {
  local file at words
  for file in "$HOME_DIR"/addons/*.values; do
    if [[ ! -e $file ]]; then continue; fi
    file=${file%.values}
    at=0 words="never looked"
    if [[ -s $file.last ]]; then read -r at words <"$file.last"; fi
    [[ $at =~ ^[0-9]{1,12}$ ]] || at=0
    printf 'kept\t%s\t%s\t%s\n' "${file##*/}" "$(($(date +%s) - at))" "$(plain <<<"$words")"
  done
}

main() {
  compare kube-ha "$OWN"
  compare kube-ha-addons "$CONFIGURED"
  if [[ -n ${SECRETS:-} ]]; then compare_secrets; fi
  tell_kept
  echo end
}
