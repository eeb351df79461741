# shellcheck shell=bash
# Bootstrap tokens that this program made, and no others. Only definitions; mint.sh and nodes.sh source it.
JOIN_TOKENS="kube-ha: for machines that join now" # their description

# Into variables first: an API that does not answer would count as "none".
end_tokens() { # end_tokens [ID]: all of them, but for that one
  local found rows name
  found=$(kubectl_admin -n kube-system get secrets --field-selector type=bootstrap.kubernetes.io/token -o json) ||
    return 1
  rows=$(jq -r --arg ours "$(printf '%s' "$JOIN_TOKENS" | base64 -w0)" --arg kept "bootstrap-token-${1:-}" \
    '.items[] | select(.data.description == $ours) | .metadata.name
      | select(test("^bootstrap-token-[a-z0-9]{6}$") and . != $kept)' <<<"$found") || return 1
  for name in $rows; do
    kubectl_admin -n kube-system delete secret --ignore-not-found -- "$name" >/dev/null || return 1
  done
}
