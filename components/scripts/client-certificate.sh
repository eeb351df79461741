# shellcheck shell=bash
# Lets the cluster sign a user's client certificate: makes the request, approves it as the administrator, prints what
# was issued. The user's key is not here. `make kubeconfig USER=` runs it over plain SSH, on a control plane node;
# operations/users/issue.py reads the lines.
# Variables: NAME (of the request), REQUEST (a CertificateSigningRequest, JSON)
# Changes: that object, which the cluster removes an hour after it was approved.

main() {
  local answer
  answer=$(kubectl_admin create -f - <<<"$REQUEST" 2>&1) ||
    die "request $NAME cannot be made: $(tail -n 1 <<<"$answer")" "see that the API answers: make status"
  echo requested
  # By this name nobody but who may delete requests could have put another one in its place.
  answer=$(kubectl_admin certificate approve -- "$NAME" 2>&1) ||
    die "request $NAME cannot be approved: $(tail -n 1 <<<"$answer")" "kubectl delete csr $NAME, then ask again"
  wait_for 60 "certificate of request $NAME, which the controller manager signs," signed
  printf 'certificate\t%s\n' "$(kubectl_admin get csr -o 'jsonpath={.status.certificate}' -- "$NAME")"
}
# Fails with what the cluster says of it so far.
signed() {
  local said
  said=$(kubectl_admin get csr -o 'jsonpath={.status.certificate}{"\n"}{.status.conditions[*].message}' -- "$NAME") ||
    return 1
  if [[ -n ${said%%$'\n'*} ]]; then return; fi
  printf '%s\n' "${said#*$'\n'}"
  return 1
}
