# shellcheck shell=bash
# What add-ons of the user's hold, listed in the cluster: a ConfigMap kube-system/kube-ha-addon-NAME each, with lines
# "kind namespace name" in `objects` (in the order in which they are applied) and in `left` (no longer in its files, and
# still to be deleted). Sourced by the phases manifests and nodes, and before it cluster-reader.sh. Whoever may write
# such a ConfigMap could name any object: a line counts if each of its words has the form of what it stands for.
ADDON_MANAGER=kube-ha-addons # owner of the fields that add-ons set
ADDON_LABEL=kube-ha.io/addon # of these lists; an annotation of objects that say no more than their name
GONE_S=90
# Deleting one of these deletes what others keep in it, or what nobody can bring back: as addon_files.py has them.
KEPT_KINDS=" CustomResourceDefinition.apiextensions.k8s.io Namespace PersistentVolume PersistentVolumeClaim"
KEPT_KINDS+=" StorageClass.storage.k8s.io "

# shellcheck disable=SC2016 # of jq
LISTED='
  def addon: only("[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?");
  def objects: if type == "string" then split("\n")[] else empty end
    | select(test("\\A[A-Za-z][A-Za-z0-9]{0,62}([.][a-z0-9.-]{1,253})? "
      + "[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])? [A-Za-z0-9:_][A-Za-z0-9:._@+-]{0,252}\\z"));'

# list_objects: NAME holds OBJECTS from now on; what it held before and is not among them has left.
list_objects() {
  local now before
  now=$(awk '{for (i = 3; i <= NF; i++) print $1, $2, $i}' <<<"$OBJECTS")
  before=$(kubectl_admin -n kube-system get configmap "kube-ha-addon-$NAME" --ignore-not-found -o json)
  before=$(jq -r "$CLEAN $LISTED"'.data | (.objects, .left) | objects' <<<"${before:-"{}"}")
  before=$(awk 'NR == FNR {now[$0]; next} NF && !($0 in now) && !seen[$0]++' <(printf '%s\n' "$now") - <<<"$before")
  put_list "$NAME" "$now" "$before"
}
put_list() { # put_list ADDON OBJECTS LEFT
  # By files: a list may be longer than an argument.
  jq -n --arg name "$1" --arg mark "$ADDON_LABEL" --rawfile objects <(printf '%s' "$2") --rawfile left \
    <(printf '%s' "$3") \
    '{apiVersion: "v1", kind: "ConfigMap",
      metadata: {name: "kube-ha-addon-\($name)", namespace: "kube-system", labels: {($mark): $name}},
      data: {objects: $objects, left: $left}}' |
    kubectl_admin apply --server-side --force-conflicts --field-manager kube-ha -f - >/dev/null
}

# sweep_addons ADDON...: these are wanted. What has left them, and all that others held, is deleted, last applied first,
# but for what one of them holds now.
sweep_addons() {
  local lists wanted=" $* " table kind namespace name
  lists=$(kubectl_admin -n kube-system get configmaps -l "$ADDON_LABEL" -o json)
  table=$(jq -r --arg wanted "$wanted" --arg mark "$ADDON_LABEL" \
    "$CLEAN $LISTED"'.items[] | (.metadata.labels[$mark] | addon) as $name
    | ($wanted | contains(" \($name) ")) as $stays
    | (.data.objects | objects | [if $stays then "holds" else "left" end, .]), (.data.left | objects | ["left", .])
    | join(" ")' <<<"$lists")
  # Into a variable first: a loop that fails on the right of a pipe could go unseen.
  table=$(awk '$1 == "holds" {holds[$2 " " $3 " " $4]; next} {rows[++count] = $2 " " $3 " " $4}
    END {for (; count; count--) if (!(rows[count] in holds) && !seen[rows[count]]++) print rows[count]}' <<<"$table")
  while read -r kind namespace name; do
    if [[ -n $kind ]]; then drop_object "$kind" "$namespace" "$name"; fi
  done <<<"$table"
  settle_lists "$wanted" "$lists"
}

# When all of them are gone: a sweep that is cut off begins again with the same ones.
settle_lists() { # settle_lists WANTED LISTS
  local name left rows
  rows=$(jq -r --arg mark "$ADDON_LABEL" \
    "$CLEAN $LISTED"'.items[] | (.metadata.labels[$mark] | addon | select(. != "")) as $name
      | select(.metadata.name == "kube-ha-addon-" + $name) | "\($name) \((.data.left // "") != "")"' <<<"$2")
  while read -r name left; do
    if [[ -z $name ]]; then continue; fi
    if [[ $1 != *" $name "* ]]; then
      kubectl_admin -n kube-system delete --ignore-not-found -- configmap "kube-ha-addon-$name" >/dev/null
      # shellcheck disable=SC2154 # here: the folder of run.sh
      rm -f "${here%/*}/addon.$name."*
      changes=$((changes + 1))
      log "add-on $name has left"
    elif [[ $left == true ]]; then
      put_list "$name" "$(jq -r --arg name "$name" \
        '.items[] | select(.metadata.name == "kube-ha-addon-" + $name) | .data.objects // ""' <<<"$2")" ""
    fi
  done <<<"$rows"
}

drop_object() { # drop_object KIND NAMESPACE NAME
  local found
  if [[ $KEPT_KINDS == *" $1 "* ]]; then
    log "kept $1 $3, which is no longer of an add-on: delete it by hand if nothing needs it"
    return
  fi
  if ! found=$(kubectl_admin -n "$2" get --ignore-not-found --show-managed-fields -o json -- "$1" "$3" 2>&1); then
    # Nor are there objects of a kind that nobody knows any more.
    if [[ $found == *"the server doesn't have a resource type"* ]]; then return; fi
    die "cannot look for $1 $3 (namespace $2), which has left its add-on: $(tail -n 1 <<<"$found")"
  fi
  # One that was never applied, or recreated by somebody else, is not ours to delete.
  if [[ -z $found ]] ||
    ! jq -e --arg manager "$ADDON_MANAGER" --arg mark "$ADDON_LABEL" \
      'any(.metadata.managedFields[]?; .manager == $manager) or .metadata.annotations[$mark] != null' \
      <<<"$found" >/dev/null; then
    return
  fi
  delete_seen "$1" "$found" || return 0 # by now it is another one, or gone
  # shellcheck disable=SC2034 # read by die
  local HINT="who removes these finalizers? kubectl -n $2 get $1 $3 -o yaml tells; once it is gone, run pulumi up again"
  wait_for "$GONE_S" "end of $1 $3 (namespace $2), which has left its add-on," object_gone "$1" "$2" "$3"
  changes=$((changes + 1))
  log "deleted $1 $3 (namespace $2)"
}
# delete_seen KIND OBJECT: this very object and no other that has taken its name since, which is what its uid says.
# kubectl has no word for that.
delete_seen() {
  local kinds path answer uid
  kinds=$(kubectl_admin api-resources --no-headers)
  path=$(jq -r --rawfile kinds <(printf '%s' "$kinds") --arg kind "${1%%.*}" \
    '. as $is | [$kinds | split("\n")[] | [splits(" +") | select(. != "")]
      | select(.[-1] == $kind and .[-3] == $is.apiVersion)][0][0] as $plural
    | (if .apiVersion | contains("/") then "/apis/"
    else "/api/" end) + .apiVersion + (if .metadata.namespace then "/namespaces/" + .metadata.namespace
    else "" end) + "/\($plural)/" + .metadata.name' <<<"$2")
  uid=$(jq -c '{apiVersion: "v1", kind: "DeleteOptions", propagationPolicy: "Background",
    preconditions: {uid: .metadata.uid}}' <<<"$2")
  if answer=$(kubectl_admin delete --raw "$path" -f - 2>&1 >/dev/null <<<"$uid"); then return; fi
  [[ $answer == *NotFound* || $answer == *Conflict* || $answer == *"not found"* ]] ||
    die "$path, which has left its add-on, cannot be deleted: $answer"
  return 1
}
object_gone() { # object_gone KIND NAMESPACE NAME
  local left
  left=$(kubectl_admin -n "$2" get --ignore-not-found \
    -o 'jsonpath=it is still there, finalizers {.metadata.finalizers}' -- "$1" "$3") || return 1
  if [[ -z $left ]]; then return; fi
  printf '%s\n' "$left"
  return 1
}
