# shellcheck shell=bash
# Makes the cluster hold the objects of one add-on of the user's. Runs on a master.
# Variables: NAME, FILES (lines "file sha256 path": file as it was copied beside the folder of the scripts, path as the
#   stack's config has it), OBJECTS (lines "kind namespace name ...": Secrets, then what is in the files, in their
#   order), LIST ("file sha256": these lines, where they are too long for a command; may be unset), SECRETS (Secrets
#   with what is in them, JSON, in no file and no argument; may be unset), RECONCILE (1: it is put back between updates,
#   see reconcile.sh; timer: this is such a run; may be unset).
# What it holds is listed in a ConfigMap of the cluster (addon-list.sh); objects that left are deleted by phase nodes,
# once all add-ons are applied.
# shellcheck source=cluster-reader.sh disable=SC2154 # here: the folder of run.sh
source "$here/cluster-reader.sh"
# shellcheck source=addon-list.sh disable=SC2154 # here: the folder of run.sh
source "$here/addon-list.sh"
# shellcheck source=addon-diff.sh
source "$here/addon-diff.sh"
# shellcheck source=reconcile.sh
source "$here/reconcile.sh"
COPIES=${COPIES:-${here%/*}}
copied=()   # words for kubectl, of what check_files saw
APPLY_S=240 # a webhook of the add-on's own may need a worker that joins meanwhile

check_files() {
  local file sum path is
  while read -r file sum path; do
    if [[ -z $file ]]; then continue; fi # an add-on may hold Secrets alone
    [[ -f $COPIES/$file ]] ||
      die "file $COPIES/$file ($path) is missing" \
        "raise converge.generation and run pulumi up again: it is copied again"
    is=$(sha256sum <"$COPIES/$file")
    [[ ${is%% *} == "$sum" ]] ||
      die "file $COPIES/$file is not the $path of this plan" \
        "raise converge.generation and run pulumi up again: it is copied again"
    copied+=(-f "$COPIES/$file")
  done <<<"$FILES"
}

check_list() {
  local file sum is
  if [[ -z ${LIST:-} ]]; then return; fi
  read -r file sum <<<"$LIST"
  is=$(sha256sum <"$COPIES/$file") || is=""
  [[ ${is%% *} == "$sum" ]] ||
    die "file $COPIES/$file is not the list of objects of this plan" \
      "raise converge.generation and run pulumi up again: it is copied again"
  OBJECTS=$(<"$COPIES/$file")
}

# Server-side, as the owner of these fields: big definitions fit, and what others added to the objects stays. kubectl
# continues past what it cannot apply yet: objects of a kind that the same files define, or in a namespace that comes
# later. So all is applied until nothing is left over. What the API refuses for what is in it, no waiting fixes.
HOPELESS=" is invalid: |field not declared in schema|strict decoding error|unknown field|error parsing"
apply() {
  local answer
  rm -f "$STATE/manifests.refused"
  if answer=$(timeout 120 kubectl --kubeconfig /etc/kubernetes/admin.conf --request-timeout 30s apply --server-side \
    --force-conflicts --field-manager "$ADDON_MANAGER" ${SECRETS:+-f -} "${copied[@]}" 2>&1 >/dev/null \
    <<<"${SECRETS:-}"); then
    return
  fi
  printf '%s\n' "$answer"
  [[ $answer =~ $HOPELESS ]] || return 1
  grep -E "$HOPELESS" <<<"$answer" >"$STATE/manifests.refused"
}

# An object that says no more than its name (a ServiceAccount) has no field that anybody owns, and API servers note no
# owners of what is added to it later: whether it is the add-on's could not be seen when it leaves.
mark_bare() {
  local found rows kind namespace name
  if [[ -z $FILES ]]; then return; fi
  found=$(kubectl_admin get --show-managed-fields -o json "${copied[@]}") || return 1
  rows=$(jq -r --arg manager "$ADDON_MANAGER" --arg mark "$ADDON_LABEL" --arg name "$NAME" '(.items // [.])[]
    | select(any(.metadata.managedFields[]?; .manager == $manager) or .metadata.annotations[$mark] == $name | not)
    | (.apiVersion | if contains("/") then "." + split("/")[0] else "" end) as $group
    | "\(.kind)\($group) \(.metadata.namespace // "default") \(.metadata.name)"' <<<"$found")
  while read -r kind namespace name; do
    if [[ -z $kind ]]; then continue; fi
    kubectl_admin -n "$namespace" annotate --overwrite -- "$kind" "$name" "$ADDON_LABEL=$NAME" >/dev/null || return 1
  done <<<"$rows"
}

# A Secret that says for whom (annotation kube-ha.io/basic-auth) and holds nothing yet gets a password that nobody has
# seen, and what Prometheus' servers know it by (web.yaml: bcrypt, as crypt(3) of the C library makes it).
ACCESS_MARK=kube-ha.io/basic-auth
ACCESS_MANAGER=kube-ha-passwords
make_passwords() {
  local rows namespace name user password made salt
  if [[ -z $FILES ]]; then return; fi
  rows=$(kubectl_admin get -o json "${copied[@]}" | jq -r --arg mark "$ACCESS_MARK" '(.items // [.])[]
    | select(.kind == "Secret" and .metadata.annotations[$mark] != null and (.data.password // "") == "")
    | "\(.metadata.namespace) \(.metadata.name) \(.metadata.annotations[$mark])"') || return 1
  while read -r namespace name user; do
    if [[ -z $namespace ]]; then continue; fi
    password=$(openssl rand -hex 24)
    salt=$(openssl rand -hex 11)
    # Not as arguments: those of programs are everybody's to read.
    # shellcheck disable=SC2016 # Perl's variables
    made=$(printf '%s\n' "$password" "\$2b\$10\$$salt" |
      perl -e 'chomp(my @said = <STDIN>); print crypt($said[0], $said[1])')
    if [[ $made != \$2b\$10\$* || ${#made} != 60 ]]; then
      echo "crypt(3) of perl makes no bcrypt"
      return 1
    fi
    # shellcheck disable=SC2016 # jq's variables
    PASSWORD=$password MADE=$made jq -n --arg namespace "$namespace" --arg name "$name" --arg user "$user" \
      '{apiVersion: "v1", kind: "Secret", metadata: {$name, $namespace},
        stringData: {username: $user, password: env.PASSWORD,
          "web.yaml": ({basic_auth_users: {($user): env.MADE}} | tojson)}}' |
      kubectl_admin apply --server-side --force-conflicts --field-manager "$ACCESS_MANAGER" -f - >/dev/null || return 1
  done <<<"$rows"
}

# Copies of what this add-on was before.
drop_copies() {
  local copy
  for copy in "$COPIES/addon.$NAME."*; do
    if [[ -e $copy && $'\n'$FILES$'\n'${LIST:-} != *$'\n'"${copy##*/} "* ]]; then rm -f "$copy"; fi
  done
}

main() {
  local paths
  if [[ ${RECONCILE:-} == timer ]]; then
    put_back
    return
  fi
  paths=$(awk 'NF {printf "%s%s", sep, $3; sep = ", "}' <<<"$FILES")
  paths=${paths:-its secrets}
  # shellcheck disable=SC2034 # read by die
  HINT="fix what it says in $paths, or what it waits for, then run pulumi up again;"
  HINT+=" by hand on $NODE: kubectl apply --server-side -f of $COPIES/addon.$NAME.*"
  own
  check_files
  check_list
  wait_for 60 "API ready" kubectl_admin get --raw /readyz
  list_objects # before the first is applied: whatever a run that is cut off leaves is known to the next one
  unmark_kept
  wait_for "$APPLY_S" "add-on $NAME ($paths) applied" apply
  if [[ -s $STATE/manifests.refused ]]; then
    die "add-on $NAME: the API refuses $(head -n 3 "$STATE/manifests.refused" | cut -c 1-300 | paste -sd';')"
  fi
  wait_for 60 "objects of add-on $NAME with its mark" mark_bare
  wait_for 60 "passwords of add-on $NAME" make_passwords
  drop_copies
  keep_addon
  log "applied add-on $NAME"
  finish
}
