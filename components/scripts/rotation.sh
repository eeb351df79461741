# shellcheck shell=bash
# Finishes a step of a rotation for everybody who is not a node: what the cluster keeps of its CAs is what this master
# trusts, and every Secret is in etcd under the key that encrypts now. Runs on a master, after every master has made the
# step.
# Variables: KEYS (words "subject=generations" of what ever was rotated), ETCD_ENDPOINTS (comma list, as the
#   apiserver's), ENCRYPTS (name of the key that encrypts; empty where nothing is encrypted).
# shellcheck source=etcdctl.sh disable=SC2154 # here: the folder of run.sh
source "$here/etcdctl.sh"
# shellcheck source=membership.sh disable=SC2154 # here: the folder of run.sh
source "$here/membership.sh"
# shellcheck source=cluster-reader.sh
source "$here/cluster-reader.sh"
PKI=$ROOT/etc/kubernetes/pki

rotated() { [[ " $KEYS" == *" $1="* ]]; } # rotated SUBJECT

# json_text: stdin as the inside of a JSON text.
json_text() { awk '{gsub(/\\/, "\\\\"); gsub(/"/, "\\\""); printf "%s\\n", $0}'; }
certificates() { grep -c 'BEGIN CERTIFICATE' || true; } # none is an answer

# Every namespace has a copy for its pods. The controller manager publishes it, and has read the file when it started;
# whoever edits objects of a namespace may change that copy, so it has to be seen right once. One that was made
# immutable can only be recreated, and a namespace where that happens again has its pods trust what its own people say:
# it holds up nobody else.
CA_S=180      # for the controller manager to publish it everywhere
published=" " # namespaces whose copy was seen right, and those that are left to themselves: " a b "
missing=""    # those that are waited for
made_anew=" " # namespaces where a copy was deleted that could not be changed
await_pods() {
  local end=$((SECONDS + CA_S))
  # Not by wait_for, which forgets what its command has seen.
  until pods_know_the_ca; do
    ((SECONDS < end)) ||
      die "the CA of this step not in kube-root-ca.crt of every namespace after $CA_S s:$(
        printf ' not yet in%s' "${missing:- any, for the API does not answer}"
      )" "see that a kube-controller-manager runs (kubectl -n kube-system get pods), then run pulumi up again"
    sleep 1
  done
}
pods_know_the_ca() {
  local rows namespace state uid
  missing=""
  rows=$(copies_of_ca) || return 1
  while IFS='|' read -r namespace state uid; do
    if [[ -z $namespace || $published == *" $namespace "* ]]; then continue; fi
    case $state in
      right) published+="$namespace " ;;
      fixed) not_ours "$namespace" "$uid" ;;
    esac
    if [[ $published != *" $namespace "* ]]; then missing+=" $namespace"; fi
  done <<<"$rows"
  [[ -z $missing ]]
}
# copies_of_ca: rows "namespace|state|uid" of those that are in use; state: right, fixed (of other data, and immutable),
# other or none.
copies_of_ca() {
  local all
  all=$(kubectl_admin get namespaces -o json &&
    kubectl_admin get configmaps -A --field-selector metadata.name=kube-root-ca.crt -o json) || return 1
  jq -rs --rawfile want "$PKI/ca.crt" \
    "$CLEAN"'(.[1].items | map({key: .metadata.namespace, value: .}) | from_entries) as $copies
    | .[0].items[] | select(.status.phase == "Active") | .metadata.name | dns_label | select(. != "") | . as $name
    | $copies[$name] as $copy
    | (if $copy == null then "none" elif (($copy.data // {})["ca.crt"]
    | type == "string" and rtrimstr("\n") == ($want | rtrimstr("\n"))) then "right"
    elif $copy.immutable == true then "fixed" else "other" end) as $state
    | "\($name)|\($state)|\($copy.metadata.uid // "" | only("[0-9a-f-]{1,64}"))"' <<<"$all"
}
not_ours() { # not_ours NAMESPACE UID
  if [[ $made_anew == *" $1 "* ]]; then
    log "WARNING ConfigMap kube-root-ca.crt of namespace $1 is immutable and holds other CAs, once more after it was" \
      "deleted: pods there will not know the API server when the CA before goes; see who makes it (audit log)"
    published+="$1 "
    return
  fi
  log "ConfigMap kube-root-ca.crt of namespace $1 is immutable and holds other CAs: it is deleted, so that the" \
    "controller manager recreates it"
  # another one by now: looked at again
  kubectl_admin delete --raw "/api/v1/namespaces/$1/configmaps/kube-root-ca.crt" -f \
    - >/dev/null 2>&1 <<<"{\"apiVersion\":\"v1\",\"kind\":\"DeleteOptions\",\"preconditions\":{\"uid\":\"$2\"}}" ||
    return 0
  made_anew+="$1 "
  changes=$((changes + 1))
}

# What tokens of joining nodes are checked with; there once a node has joined by one. The signatures in it are its
# controller's.
tell_cluster_info() {
  local text data want
  text=$(kubectl_admin -n kube-public get configmap cluster-info --ignore-not-found -o 'jsonpath={.data.kubeconfig}')
  if [[ -z $text ]]; then return; fi
  data=$(base64 -w0 "$PKI/ca.crt")
  # shellcheck disable=SC2001 # up to the end of the line
  want=$(sed "s|certificate-authority-data: .*|certificate-authority-data: $data|" <<<"$text")
  if [[ $want == "$text" ]]; then return; fi
  kubectl_admin -n kube-public patch configmap cluster-info --type merge \
    -p "{\"data\":{\"kubeconfig\":\"$(json_text <<<"$want")\"}}" >/dev/null
  changes=$((changes + 1))
  log "cluster-info holds the CAs of this step"
}

# Extension API servers trust what stands there. API servers only ever add to it, so what was dropped is taken out here.
tell_extension_servers() {
  if [[ -z $(outdated_trust) ]]; then return; fi
  wait_for 60 "CAs that were dropped gone from ConfigMap kube-system/extension-apiserver-authentication" \
    drop_outdated_trust
  changes=$((changes + 1))
  log "extension API servers know the CAs of this step"
}
outdated_trust() { # names of entries with another number of CAs than there are
  local key have want
  for key in client-ca-file:ca.crt requestheader-client-ca-file:front-proxy-ca.crt; do
    have=$(kubectl_admin -n kube-system get configmap extension-apiserver-authentication \
      -o "jsonpath={.data.${key%%:*}}" | certificates)
    want=$(certificates <"$PKI/${key#*:}")
    if [[ $have != "$want" ]]; then printf '%s\n' "${key%%:*}"; fi
  done
}
drop_outdated_trust() {
  local clients proxies
  clients=$(json_text <"$PKI/ca.crt")
  proxies=$(json_text <"$PKI/front-proxy-ca.crt")
  kubectl_admin -n kube-system patch configmap extension-apiserver-authentication --type merge \
    -p "{\"data\":{\"client-ca-file\":\"$clients\",\"requestheader-client-ca-file\":\"$proxies\"}}" >/dev/null ||
    return 1
  sleep 2 # an API server that has not read its new file yet would add the old one again
  [[ -z $(outdated_trust) ]]
}

# Keys by which Secrets are in etcd, one a line for each Secret that is not under the one that encrypts now. What is
# encrypted begins with the name.
under_other_keys() {
  # none is an answer
  etcdctl_at "$ETCD_ENDPOINTS" get /registry/secrets/ --prefix --print-value-only |
    grep -aoE '^k8s:enc:secretbox:v1:key-[0-9]+(-seed-[0-9]+)?:' | grep -vxF "k8s:enc:secretbox:v1:$ENCRYPTS:" || true
}
# An API server writes a Secret again when it was read by another key than the first one, though nothing in it changes.
# Those that somebody else changes meanwhile are refused as outdated, and have been written by him.
encrypt_again() {
  local left round
  for round in 1 2 3 4 5; do
    left=$(under_other_keys | wc -l)
    if ((left == 0)); then return; fi
    log "writing Secrets again with $ENCRYPTS: $left (round $round)"
    # what is left is counted
    kubectl_admin get secrets -A -o json |
      kubectl --kubeconfig /etc/kubernetes/admin.conf replace -f - >"$STATE/secrets.log" 2>&1 || true
    changes=$((changes + 1))
  done
  left=$(under_other_keys | wc -l)
  ((left == 0)) ||
    die "$left Secrets are not encrypted with $ENCRYPTS: $(grep -v replaced "$STATE/secrets.log" | tail -n 2)" \
      "see $STATE/secrets.log on $NODE (an admission webhook that refuses them?), then run pulumi up again"
}

main() {
  own
  if rotated kubernetes; then
    await_pods
    tell_cluster_info
  fi
  if rotated kubernetes || rotated front-proxy; then tell_extension_servers; fi
  if [[ -n $ENCRYPTS ]] && { rotated encryption || rotated seed; }; then encrypt_again; fi
  finish
}
