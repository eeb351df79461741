# shellcheck shell=bash
# Which CAs the kubeconfigs of this node trust, by which CA the kubelet is known, and what it serves with: what node.sh
# and master.sh share. Only definitions; they source it. Values: SERVING_ISSUED (1: it serves with a certificate of the
# cluster's CA; empty: it signs one itself), CLOUD_DOMAIN (of the names under which kubelets serve once AWS's controller
# manager has named them; may be unset), PROVIDER_ID (what the cloud knows this machine by; may be unset).
SERVING=${IDENTITY%/*}/kubelet-server-current.pem

# embed_ca FILE KUBECONFIG...: kubeconfigs trust what FILE holds. kubeadm puts one certificate there, and while a CA is
# replaced there are two.
embed_ca() {
  local file=$1 path data text
  shift
  for path in "$@"; do
    if [[ ! -s $path || $(embedded_ca "$path" | tr -d '[:space:]') == "$(tr -d '[:space:]' <"$file")" ]]; then
      continue
    fi
    data=$(base64 -w0 "$file")
    text=$(sed "s|certificate-authority-data: .*|certificate-authority-data: $data|" "$path")
    if [[ $path == */kubelet.conf ]]; then kubelet_reads_anew; fi
    put 600 "$path" <<<"$text"
  done
}
embedded_ca() { sed -n 's/^ *certificate-authority-data: *//p' "$1" | head -n 1 | base64 -d; }
# Before a file changes that the kubelet reads at its start only: cut off behind that, it is restarted all the same.
kubelet_reads_anew() { rm -f "$STATE/kubelet.service.sum"; }

# The first CA of a bundle is the one that signs. A certificate that has expired is another matter.
signed_by() { # signed_by CA-BUNDLE CERTIFICATE
  local signer
  signer=$(openssl x509 -in "$1")
  openssl verify -no_check_time -CAfile <(printf '%s\n' "$signer") "$2" >/dev/null 2>&1
}

# What rotates by itself near its end is renewed now when another CA signs. Until then the CA before is trusted as well.
renew_identity() { # renew_identity CA-BUNDLE COMMAND...: COMMAND FILE writes certificate and key there
  if [[ ! -f $IDENTITY ]] || signed_by "$1" "$IDENTITY"; then return; fi
  log "the kubelet gets a certificate of the CA that signs now"
  renew_certificate "$IDENTITY" "$@"
}
# What the kubelet serves with, before it starts: it would answer nobody until it has asked for one itself. Later it
# renews it so.
renew_serving() { # renew_serving CA-BUNDLE COMMAND...
  local SERVING_ADDRESS
  if [[ -z $SERVING_ISSUED ]]; then return; fi
  SERVING_ADDRESS=$(serving_address)
  if serves_well "$1"; then return; fi
  log "the kubelet gets a certificate of the cluster's CA to serve with"
  renew_certificate "$SERVING" "$@"
}
# As kubeadm told the kubelet when this machine joined. It is not a value of workers, whose values are all the same.
serving_address() {
  local address=${ADDRESS:-}
  if [[ -z $address ]]; then
    address=$(sed -n 's/.*--node-ip=\([0-9.]*\).*/\1/p' "$ROOT/var/lib/kubelet/kubeadm-flags.env")
  fi
  [[ -n $address ]] ||
    die "the kubelet's flags name no address of this node" "see --node-ip in /var/lib/kubelet/kubeadm-flags.env"
  printf '%s\n' "$address"
}
serves_well() { # serves_well CA-BUNDLE
  local signer name
  if [[ ! -f $SERVING ]]; then return 1; fi
  signer=$(openssl x509 -in "$1")
  for name in "$NODE" ${CLOUD_DOMAIN:+"ip-${SERVING_ADDRESS//./-}.$CLOUD_DOMAIN"}; do
    if openssl verify -CAfile <(printf '%s\n' "$signer") -verify_ip "$SERVING_ADDRESS" -verify_hostname "$name" \
      "$SERVING" >/dev/null 2>&1; then
      return
    fi
  done
  return 1
}
renew_certificate() { # renew_certificate PATH CA-BUNDLE COMMAND...
  local path=$1 ca=$2 new=$STATE/identity.pem target
  shift 2
  rm -f "$new"
  (umask 077 && : >"$new")
  "$@" "$new"
  signed_by "$ca" "$new" ||
    die "the new certificate of the kubelet is not of the CA that signs" \
      "see that every master has made this step (journalctl -u kubelet there), then run pulumi up again"
  kubelet_reads_anew
  target=${path%-current.pem}-$(date -u +%F-%H-%M-%S).pem
  put 600 "$target" <"$new"
  ln -sfn "$target" "$path.new"
  mv -T "$path.new" "$path"
  rm -f "$new"
}

# A node may ask for certificates of its own name, and the cluster approves them: Kubernetes itself those by which it is
# known, approve.sh those that it serves with.
request_identity() { # request_identity FILE
  request_certificate "$1" kube-apiserver-client-kubelet "client auth"
}
request_serving() { # request_serving FILE
  # shellcheck disable=SC2034 # read by die
  local HINT="on each master journalctl -u kube-ha-approver says what it does not approve, and why;"
  HINT+=" then run pulumi up again"
  request_certificate "$1" kubelet-serving "server auth"
}
request_certificate() { # request_certificate FILE SIGNER USE
  local key=$1.key name
  name=kube-ha-$NODE-$(date +%s%N)
  new_key "$key"
  wait_for 60 "certificate request $name of $NODE accepted" ask_for_certificate "$key" "$name" "$2" "$3"
  wait_for 90 "certificate request $name of $NODE signed (kubectl get csr)" take_certificate "$name" "$1"
  cat "$key" >>"$1"
  rm -f "$key"
}
new_key() { (umask 077 && openssl ecparam -name prime256v1 -genkey -noout -out "$1" 2>/dev/null); }
# As the kubelet itself asks, whatever the machine's own settings of OpenSSL say.
new_request() { # new_request KEY USE
  local names=()
  if [[ $2 == "server auth" ]]; then names=(-addext "subjectAltName=DNS:$NODE,IP:$SERVING_ADDRESS"); fi
  openssl req -new -key "$1" -config <(printf '[req]\ndistinguished_name=dn\nstring_mask=default\n[dn]\n') \
    -subj "/O=system:nodes/CN=system:node:$NODE" "${names[@]}"
}
ask_for_certificate() { # ask_for_certificate KEY NAME SIGNER USE
  local request body requests=https://127.0.0.1:3446/apis/certificates.k8s.io/v1/certificatesigningrequests
  request=$(new_request "$1" "$4" | base64 -w0)
  body='{"apiVersion":"certificates.k8s.io/v1","kind":"CertificateSigningRequest"'
  body+=",\"metadata\":{\"name\":\"$2\"},\"spec\":{\"request\":\"$request\""
  body+=",\"signerName\":\"kubernetes.io/$3\",\"usages\":[\"digital signature\",\"$4\"]}}"
  # accepted by an answer that got lost
  as_kubelet -X POST -H 'Content-Type: application/json' -o /dev/null -d "$body" "$requests" ||
    as_kubelet -o /dev/null "$requests/$2"
}
take_certificate() { # take_certificate NAME FILE
  local answer
  answer=$(as_kubelet "https://127.0.0.1:3446/apis/certificates.k8s.io/v1/certificatesigningrequests/$1")
  answer=$(sed -n 's/.*"certificate": *"\([A-Za-z0-9+/=]*\)".*/\1/p' <<<"$answer" | head -n 1)
  if [[ -z $answer ]]; then
    echo "not signed yet"
    return 1
  fi
  base64 -d <<<"$answer" >"$2"
}
as_kubelet() { curl -fsS --max-time 10 --noproxy '*' --cacert "$CLUSTER_CA" --cert "$IDENTITY" "$@"; }

# A kubelet says which machine of the cloud it is when it registers its Node, and never again: a Node from before gets
# it here. Whoever looks for its machine by the name of the Node would find none, and take it for gone.
tell_provider_id() {
  local is
  if [[ -z ${PROVIDER_ID:-} ]]; then return; fi
  wait_for 60 "Node $NODE read by its own kubelet identity" read_own_node
  is=$(jq -r '.spec.providerID // ""' "$STATE/node.json")
  rm -f "$STATE/node.json"
  if [[ $is == "$PROVIDER_ID" ]]; then return; fi
  [[ -z $is ]] ||
    die "Node $NODE has provider ID $is and not $PROVIDER_ID, and no Node can change it" \
      "raise nodes.$NODE.generation: the node is recreated"
  wait_for 60 "provider ID of Node $NODE" as_kubelet -X PATCH -H 'Content-Type: application/merge-patch+json' \
    -o /dev/null -d "{\"spec\":{\"providerID\":\"$PROVIDER_ID\"}}" "https://127.0.0.1:3446/api/v1/nodes/$NODE"
  changes=$((changes + 1))
  log "Node $NODE has provider ID $PROVIDER_ID"
}
read_own_node() { as_kubelet "https://127.0.0.1:3446/api/v1/nodes/$NODE" >"$STATE/node.json"; }
