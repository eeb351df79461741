# shellcheck shell=bash
# Finishes a step of a rotation for everybody who is no node: what the cluster keeps of its CAs is what this master trusts, and every Secret lies in
# etcd under the key that encrypts now. Runs on a master, after every master has made the step.
# Values: KEYS (words "subject=generations" of what ever was rotated), ETCD_ENDPOINTS (comma list, as the apiserver's), ENCRYPTS (name of the key that encrypts; empty where nothing is encrypted).
# shellcheck source=membership.sh disable=SC2154 # here: the folder of run.sh
source "$here/membership.sh"
PKI=$ROOT/etc/kubernetes/pki

rotated() { [[ " $KEYS" == *" $1="* ]]; } # rotated SUBJECT

# json_text: stdin as the inside of a JSON text.
json_text() { awk '{gsub(/\\/, "\\\\"); gsub(/"/, "\\\""); printf "%s\\n", $0}'; }
certificates() { grep -c 'BEGIN CERTIFICATE' || true; } # none is an answer

# Every namespace has a copy for its pods. The controller manager publishes it, and has read the file when it started.
pods_know_the_ca() {
  local want rows
  want="\"$(json_text <"$PKI/ca.crt")\""
  # shellcheck disable=SC2016 # a template of kubectl
  rows=$(kubectl_admin get namespaces,configmaps -A -o 'go-template={{range .items}}{{if eq .kind "Namespace"}}{{if eq .status.phase "Active"}}namespace {{.metadata.name}}{{"\n"}}{{end}}{{else if eq .metadata.name "kube-root-ca.crt"}}{{printf "%q" (index .data "ca.crt")}} {{.metadata.namespace}}{{"\n"}}{{end}}{{end}}') || return 1
  WANT=$want awk '
    $1 == "namespace" {all[$2]; next}
    index($0, ENVIRON["WANT"] " ") == 1 {known[$NF]}
    END {for (name in all) if (!(name in known)) {print "not yet in namespace " name; missing = 1}; exit missing}' <<<"$rows"
}

# What tokens of joining nodes are checked with; there once a node has joined by one. The signatures in it are its controller's.
tell_cluster_info() {
  local text data want
  text=$(kubectl_admin -n kube-public get configmap cluster-info --ignore-not-found -o 'jsonpath={.data.kubeconfig}')
  if [[ -z $text ]]; then return; fi
  data=$(base64 -w0 "$PKI/ca.crt")
  # shellcheck disable=SC2001 # up to the end of the line
  want=$(sed "s|certificate-authority-data: .*|certificate-authority-data: $data|" <<<"$text")
  if [[ $want == "$text" ]]; then return; fi
  kubectl_admin -n kube-public patch configmap cluster-info --type merge -p "{\"data\":{\"kubeconfig\":\"$(json_text <<<"$want")\"}}" >/dev/null
  changes=$((changes + 1))
  log "cluster-info holds the CAs of this step"
}

# Extension API servers trust what stands there. API servers only ever add to it, so what was dropped is taken out here.
tell_extension_servers() {
  if [[ -z $(outdated_trust) ]]; then return; fi
  wait_for 60 "CAs that were dropped gone from ConfigMap kube-system/extension-apiserver-authentication" drop_outdated_trust
  changes=$((changes + 1))
  log "extension API servers know the CAs of this step"
}
outdated_trust() { # names of entries with another number of CAs than there are
  local key have want
  for key in client-ca-file:ca.crt requestheader-client-ca-file:front-proxy-ca.crt; do
    have=$(kubectl_admin -n kube-system get configmap extension-apiserver-authentication -o "jsonpath={.data.${key%%:*}}" | certificates)
    want=$(certificates <"$PKI/${key#*:}")
    if [[ $have != "$want" ]]; then printf '%s\n' "${key%%:*}"; fi
  done
}
drop_outdated_trust() {
  kubectl_admin -n kube-system patch configmap extension-apiserver-authentication --type merge -p "{\"data\":{\"client-ca-file\":\"$(json_text <"$PKI/ca.crt")\",\"requestheader-client-ca-file\":\"$(json_text <"$PKI/front-proxy-ca.crt")\"}}" >/dev/null || return 1
  sleep 2 # an API server that has not read its new file yet would add the old one again
  [[ -z $(outdated_trust) ]]
}

# Keys by which Secrets lie in etcd, one a line for each Secret that is not under the one that encrypts now. What is encrypted begins with the name.
under_other_keys() {
  etcdctl_at "$ETCD_ENDPOINTS" get /registry/secrets/ --prefix --print-value-only | grep -aoE '^k8s:enc:secretbox:v1:key-[0-9]+:' | grep -vxF "k8s:enc:secretbox:v1:$ENCRYPTS:" || true # none is an answer
}
# An API server writes a Secret anew when it was read by another key than the first one, though nothing in it changes. Those that somebody
# else changes meanwhile are refused as outdated, and have been written by him.
encrypt_again() {
  local left round
  for round in 1 2 3 4 5; do
    left=$(under_other_keys | wc -l)
    if ((left == 0)); then return; fi
    log "writing Secrets anew with $ENCRYPTS: $left (round $round)"
    kubectl_admin get secrets -A -o json | kubectl --kubeconfig /etc/kubernetes/admin.conf replace -f - >"$STATE/secrets.log" 2>&1 || true # what is left is counted
    changes=$((changes + 1))
  done
  left=$(under_other_keys | wc -l)
  ((left == 0)) || die "$left Secrets are not encrypted with $ENCRYPTS: $(grep -v replaced "$STATE/secrets.log" | tail -n 2)" "see $STATE/secrets.log on $NODE (an admission webhook that refuses them?), then run pulumi up again"
}

main() {
  own
  if rotated kubernetes; then
    wait_for 180 "the CA of this step in kube-root-ca.crt of every namespace" pods_know_the_ca
    tell_cluster_info
  fi
  if rotated kubernetes || rotated front-proxy; then tell_extension_servers; fi
  if rotated encryption; then encrypt_again; fi
  finish
}
