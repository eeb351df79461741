#!/usr/bin/env bash
# The kubelet asks this program which login it pulls an image with (a kubelet credential provider of Kubernetes: JSON on
# stdin, JSON on stdout). The login is Secret registry-login in kube-system, which nodes may read; it is asked for by
# the kubelet's own identity. Where there is none, the reason is on stderr, which the kubelet puts into its journal: it
# pulls without a login then, and asks again for the next image. No phase: it takes nothing from lib.sh, which has one
# stream for all that it says.
set -euo pipefail
shopt -s inherit_errexit
export LC_ALL=C PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
SECRET=/api/v1/namespaces/kube-system/secrets/registry-login
COUNTS=10m0s # so long does an answer count: another password is used after that

fail() {
  printf 'registry-login: %s\n' "$*" >&2
  exit 1
}

cat >/dev/null # which image it is for: the kubelet chooses among all logins
said=$(curl -sS --max-time 20 --noproxy '*' --cacert /etc/kube-ha/ca.crt \
  --cert /var/lib/kubelet/pki/kubelet-client-current.pem -w '\n%{http_code}' \
  "https://127.0.0.1:3446$SECRET" 2>&1) || true # the status says it
status=${said##*$'\n'}
if [[ $status != 200 ]]; then # 000: nobody answered
  fail "Secret kube-system/registry-login cannot be read: HTTP $status $(head -c 300 <<<"${said%$'\n'*}" |
    tr -cd '\040-\176')"
fi
# What jq says of text that it cannot read would have that text.
# shellcheck disable=SC2016 # of jq
jq -ce --arg counts "$COUNTS" '
  def host: sub("^https?://"; "") | sub("/(v[12]/?)?$"; "") | if . == "index.docker.io" then "docker.io" else . end;
  def login: if .auth then .auth | @base64d | capture("^(?<username>[^:]+):(?<password>.+)$"; "s")
    else select(.username and .password) | {username, password} end;
  .data[".dockerconfigjson"] | @base64d | fromjson | .auths
  | with_entries({key: .key | host, value: .value | login})
  | {kind: "CredentialProviderResponse", apiVersion: "credentialprovider.kubelet.k8s.io/v1",
    cacheKeyType: "Global", cacheDuration: $counts, auth: .}' <<<"${said%$'\n'*}" 2>/dev/null ||
  fail "Secret kube-system/registry-login holds no login that can be read (JSON with auths, as ~/.docker/config.json)"
