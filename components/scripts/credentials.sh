#!/usr/bin/env bash
# shellcheck disable=SC2154 # approve.sh sets joiner and the folders, and has ask and setting
# Which certificates were given to an incarnation that follows one that was given up. API servers refuse any other of
# that name (policy kube-ha-replaced-nodes, which reads the ConfigMap kube-ha-credentials), for the certificate of the
# one before cannot be called back. Only definitions. Installed by phase master in front of approve.sh.
CREDENTIALS=kube-ha-credentials
CREDENTIAL="X509SHA256=[0-9a-f]{64}"
CREDENTIALS_KEPT=8 # of each incarnation: a kubelet has one, and those before it that it may hold still
IDENTITIES='fieldSelector=spec.signerName%3Dkubernetes.io%2Fkube-apiserver-client-kubelet'

# issued: what was signed, oldest first, into the file of that name, lines with tabs between: user that asked (- where
# it is neither a node nor a bootstrap token's), by which certificate (- where by none), what was signed, PEM in base64.
# shellcheck disable=SC2016 # jq's
ISSUED='
  def fits($form): if type == "string" and test("\\A(?:" + $form + ")\\z") then . else "-" end;
  [.items[] | select((.status.certificate // "") != "")] | sort_by(.metadata.creationTimestamp // "")[]
  | [(.spec.username | fits("system:node:[a-z0-9.-]{1,253}|system:bootstrap:[a-z0-9]{6}")),
  (.spec.extra["authentication.kubernetes.io/credential-id"][0]? | fits($form)),
     (if (.status.certificate | length) <= 40000 then .status.certificate else "-" end | fits("[A-Za-z0-9+/=]+"))]
     | join("\t")'
issued() {
  local next="" page
  : >"$APPROVER_RUN/issued"
  for ((page = 0; page < PAGES; page++)); do
    ask call -f --max-time 60 -o "$APPROVER_RUN/page" \
      "$APPROVER_API$REQUESTS?$IDENTITIES&limit=$PAGE${next:+&continue=$next}" 2>"$APPROVER_RUN/error" || return 1
    jq -r --arg form "$CREDENTIAL" "$ISSUED" "$APPROVER_RUN/page" >>"$APPROVER_RUN/issued" 2>"$APPROVER_RUN/error" ||
      return 1
    next=$(jq -r '.metadata.continue // "" | @uri' "$APPROVER_RUN/page")
    if [[ -z $next ]]; then break; fi
  done
}

# note_credentials: fails when the API did not do what was asked. Who joins by the token of now is the incarnation of
# now; what that asks for itself is so too.
note_credentials() {
  local word
  rm -f "$APPROVER_RUN/issued"
  setting "$CREDENTIALS" || return 1
  for word in $(jq -r '.metadata.annotations["kube-ha.io/incarnations"] // "" | split(" ")[]
    | select(test("\\A[a-z0-9][a-z0-9-]{0,62}\\.[0-9]{1,7}\\z"))' "$APPROVER_RUN/$CREDENTIALS"); do
    # Both are asked for while there is such a node alone.
    if [[ ! -e $APPROVER_RUN/issued ]]; then
      joining && issued || return 1
    fi
    note_credentials_of "$word" || return 1
  done
}
note_credentials_of() { # note_credentials_of NAME.GENERATION
  local user by certificate node=system:node:${1%.*} known new count id answer
  known=$(jq -r --arg key "$1" --arg form "$CREDENTIAL" \
    '.data[$key] // "" | split(" ")[] | select(test("\\A(?:" + $form + ")\\z"))' "$APPROVER_RUN/$CREDENTIALS" |
    paste -sd' ')
  new=$known
  while IFS=$'\t' read -r user by certificate; do
    if [[ $user != "$joiner" ]] && { [[ $user != "$node" ]] || [[ " $new " != *" $by "* ]]; }; then continue; fi
    id=$(credential_of "$certificate" "$node") || continue
    if [[ " $new " != *" $id "* ]]; then new+=" $id"; fi
  done <"$APPROVER_RUN/issued"
  if [[ $new == "$known" ]]; then return; fi
  new=$(tr ' ' '\n' <<<"$new" | sed '/^$/d' | tail -n "$CREDENTIALS_KEPT" | paste -sd' ')
  if [[ $new == "$known" ]]; then return; fi
  count=$(wc -w <<<"$new")
  answer=$(jq -n --arg key "$1" --arg ids "$new" --slurpfile is "$APPROVER_RUN/$CREDENTIALS" \
    '{metadata: {resourceVersion: $is[0].metadata.resourceVersion}, data: {($key): $ids}}' |
    ask call --max-time 20 -X PATCH -H 'Content-Type: application/merge-patch+json' -d @- \
      -o "$APPROVER_RUN/$CREDENTIALS.new" -w '%{http_code}' \
      "$APPROVER_API$SETTINGS/$CREDENTIALS" 2>"$APPROVER_RUN/error")
  # 409: another master was faster, and what is left is seen in the next round.
  if [[ $answer == 409 ]]; then return; fi
  if [[ $answer != 200 ]]; then
    echo "HTTP $answer for ConfigMap $CREDENTIALS" >"$APPROVER_RUN/error"
    return 1
  fi
  mv "$APPROVER_RUN/$CREDENTIALS.new" "$APPROVER_RUN/$CREDENTIALS"
  note "incarnation ${1##*.} of ${1%.*} is known by $count certificate(s)"
}
# credential_of PEM-IN-BASE64 USER: as API servers name the certificate of that user; fails where it is another's.
credential_of() {
  local subject
  base64 -d <<<"$1" >"$APPROVER_RUN/certificate" 2>/dev/null || return 1
  subject=$(openssl x509 -in "$APPROVER_RUN/certificate" -noout -subject -nameopt RFC2253 2>/dev/null) || return 1
  [[ $subject == "subject=CN=$2,O=system:nodes" ]] || return 1
  printf 'X509SHA256=%s\n' "$(openssl x509 -in "$APPROVER_RUN/certificate" -outform der | sha256sum | cut -d' ' -f1)"
}
