# shellcheck shell=bash
# The administrator's kubeconfig of a master, for phases that ask by it before phase master has renewed it. Only
# definitions; they source it.

# Where the stack's certificates have run out so have those in kubeconfigs, which phase master renews when an API
# answers again. Who asks before that needs one that counts: this machine has the CA's key.
renew_admin() {
  local file=$ROOT/etc/kubernetes/admin.conf config=$ROOT/etc/kube-ha/kubeadm.yaml ca text answer
  if [[ ! -s $file || ! -s $config || ! -s $ROOT/etc/kubernetes/pki/ca.key ]]; then return; fi
  if sed -n 's/^ *client-certificate-data: *//p' "$file" | base64 -d |
    openssl x509 -noout -checkend 3600 >/dev/null 2>&1; then
    return
  fi
  ca=$(grep -m 1 'certificate-authority-data:' "$file")
  log "the certificate in admin.conf has run out: renewing it"
  answer=$(kubeadm certs renew admin.conf --config "$config" 2>&1) ||
    die "admin.conf cannot be renewed: $(tail -n 2 <<<"$answer")" \
      "see $config, and /etc/kubernetes/pki/ca.key, on $NODE"
  # of all CAs that are trusted; kubeadm knows the one that signs
  text=$(sed "s|^ *certificate-authority-data:.*|$ca|" "$file")
  put 600 "$file" <<<"$text"
}
