# shellcheck shell=bash
# Which CAs the kubeconfigs of this node trust, and by which CA the kubelet is known: what node.sh and master.sh share. Only definitions; they source it.

# embed_ca FILE KUBECONFIG...: kubeconfigs trust what FILE holds. kubeadm puts one certificate there, and while a CA is replaced there are two.
embed_ca() {
  local file=$1 path data text
  shift
  for path in "$@"; do
    if [[ ! -s $path || $(embedded_ca "$path" | tr -d '[:space:]') == "$(tr -d '[:space:]' <"$file")" ]]; then continue; fi
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
  local ca=$1 new=$STATE/identity.pem target
  shift
  if [[ ! -f $IDENTITY ]] || signed_by "$ca" "$IDENTITY"; then return; fi
  log "the kubelet gets a certificate of the CA that signs now"
  rm -f "$new"
  (umask 077 && : >"$new")
  "$@" "$new"
  signed_by "$ca" "$new" || die "the new certificate of the kubelet is not of the CA that signs" "see that every master has made this step (journalctl -u kubelet there), then run pulumi up again"
  kubelet_reads_anew
  target=${IDENTITY%/*}/kubelet-client-$(date -u +%F-%H-%M-%S).pem
  put 600 "$target" <"$new"
  ln -sfn "$target" "$IDENTITY.new"
  mv -T "$IDENTITY.new" "$IDENTITY"
  rm -f "$new"
}

# A node may ask for a certificate of its own name, and the cluster approves it.
request_identity() { # request_identity FILE
  local key=$1.key name
  name=kube-ha-$NODE-$(date +%s%N)
  (umask 077 && openssl ecparam -name prime256v1 -genkey -noout -out "$key" 2>/dev/null)
  wait_for 60 "certificate request $name of $NODE accepted" ask_for_certificate "$key" "$name"
  wait_for 90 "certificate request $name of $NODE signed (kubectl get csr)" take_certificate "$name" "$1"
  cat "$key" >>"$1"
  rm -f "$key"
}
ask_for_certificate() { # ask_for_certificate KEY NAME
  local request
  request=$(openssl req -new -key "$1" -subj "/O=system:nodes/CN=system:node:$NODE" | base64 -w0)
  as_kubelet -X POST -H 'Content-Type: application/json' -o /dev/null -d "{\"apiVersion\":\"certificates.k8s.io/v1\",\"kind\":\"CertificateSigningRequest\",\"metadata\":{\"name\":\"$2\"},\"spec\":{\"request\":\"$request\",\"signerName\":\"kubernetes.io/kube-apiserver-client-kubelet\",\"usages\":[\"digital signature\",\"client auth\"]}}" \
    https://127.0.0.1:3446/apis/certificates.k8s.io/v1/certificatesigningrequests || as_kubelet -o /dev/null "https://127.0.0.1:3446/apis/certificates.k8s.io/v1/certificatesigningrequests/$2" # accepted by an answer that got lost
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
