# shellcheck shell=bash
# Tells what is on this machine, and changes nothing: writes no file, starts nothing, holds no lock. Every question has
# a limit, and one that fails is an answer too. `make drift` and `make status` run it over plain SSH;
# operations/observe/answers.py reads the lines: a word, its fields, tabs between.
# Variables: ASK (words: machine, balancer, master, member, vip, firewall; or cluster, which any master answers),
#   ADDRESS, VIP (address); lists, a line each: FILES (paths), CERTIFICATES (paths of PEM files and kubeconfigs);
#   words: UNITS, PROGRAMS, ARTEFACTS (names of marks), SETTLED (names of marks), SCRIPTS (file names).
# What machines and those who write into the API say is shown to people, so a field is printable ASCII.
# shellcheck source=etcdctl.sh disable=SC2154 # here: the folder of run.sh
source "$here/etcdctl.sh"
# shellcheck source=downloads.sh disable=SC2154 # here: the folder of run.sh
source "$here/downloads.sh"
# shellcheck source=cluster-reader.sh disable=SC2154 # here: the folder of run.sh
source "$here/cluster-reader.sh"
# shellcheck source=node-record.sh
source "$here/node-record.sh"
# shellcheck source=etcd-client.sh disable=SC2154 # it travels whole
source "$here/etcd-client.sh"
# shellcheck source=etcd-identity.sh disable=SC2154
source "$here/etcd-identity.sh"
# shellcheck source=api-view.sh disable=SC2154
source "$here/api-view.sh"
# shellcheck source=firewall.sh disable=SC2154
source "$here/firewall.sh"

say() { # say WORD FIELD...
  local fields=("${@//[^[:print:]]/ }") IFS=$'\t'
  printf '%s\n' "${fields[*]}"
}
# reason TEXT: the last line of what a failed question printed
reason() { tail -n 1 <<<"${1:-no answer}" | cut -c1-200; }
content_of() { if [[ -f $1 ]]; then cat "$1"; fi; }

identity() {
  local busy=0
  say clock "$(date +%s.%N)"
  say owner "$(content_of "$STATE/owner")"
  say applied "$(content_of "$STATE/applied")"
  say incarnation "$(content_of "$STATE/incarnation")"
  # Shared, and gone at once: a phase that begins now waits for no more than that.
  if [[ -f $LOCK ]] && ! flock -s -n "$LOCK" true; then busy=1; fi
  say busy "$busy"
}

files() {
  local path sum
  while IFS= read -r path; do
    if [[ -z $path ]]; then continue; fi
    sum=missing
    if [[ -e $path ]]; then sum=$(sha256sum <"$path" 2>/dev/null | cut -d' ' -f1) || sum=unreadable; fi
    say file "$path" "$sum"
  done <<<"$FILES"
}

# compare NAME MARK: which files are no longer what MARK, lines of sha256sum, says. Names only.
compare() {
  local line
  if [[ ! -f $2 ]]; then
    say sums "$1" missing
    return
  fi
  say sums "$1" kept
  while IFS= read -r line; do
    case $line in
      *": FAILED open or read") say changed "$1" "${line%: FAILED*}" missing ;;
      *": FAILED") say changed "$1" "${line%: FAILED}" changed ;;
    esac
  done < <(timeout 20 sha256sum -c --quiet "$2" 2>/dev/null || true) # its status says no more than its lines
}

# Keys that others than root may read.
open_keys() {
  local path mode
  if [[ ! -f $STATE/pki.sums ]]; then return; fi
  while read -r _ path; do
    if [[ $path != *.key && $path != */encryption.yaml ]] || [[ ! -f $path ]]; then continue; fi
    mode=$(stat -c %a "$path") || continue
    if [[ $mode != 600 ]]; then say changed pki "$path" "mode $mode"; fi
  done <"$STATE/pki.sums"
}

units() {
  local unit key value
  local -A is
  for unit in $UNITS; do
    compare "$unit.service" "$STATE/$unit.service.sum"
    is=()
    # no answer is told as such
    while IFS='=' read -r key value; do
      is["${key:--}"]=$value
    done < <(timeout 10 systemctl show -p ActiveState,UnitFileState,ActiveEnterTimestamp,NRestarts \
      "$unit.service" 2>/dev/null || true)
    value=${is[ActiveEnterTimestamp]:-}
    if [[ -n $value ]]; then value=$(date -d "$value" +%s 2>/dev/null) || value=""; fi
    say unit "$unit" "${is[ActiveState]:-unknown}" "${is[UnitFileState]:-missing}" "$value" "${is[NRestarts]:-}"
  done
}

# What a phase notes when its work is done, or that a change was interrupted on the way.
settled_marks() {
  local name text
  for name in $SETTLED; do
    text=$(content_of "$STATE/$name.sum")
    case $text in
      "") say mark "$name" missing ;;
      "a change is under way") say mark "$name" under-way ;;
      *) say mark "$name" settled ;;
    esac
  done
}

programs() {
  local name answer words
  for name in $PROGRAMS; do
    words=(--version)
    if [[ $name == kubeadm ]]; then words=(version -o short); fi
    if [[ $name == kubectl ]]; then words=(version --client); fi
    if [[ $name == etcdctl ]]; then words=(version); fi
    if ! command -v "$name" >/dev/null; then
      say program "$name" missing
    elif answer=$(timeout 10 "$name" "${words[@]}" 2>&1); then
      say program "$name" "${answer%%$'\n'*}"
    else
      say program "$name" "no answer: $(reason "$answer")"
    fi
  done
}

artefacts() {
  local name state
  for name in $ARTEFACTS; do
    state=untouched
    untouched "$name" || state=touched
    say artefact "$name" "$(content_of "$STATE/$name.artefact")" "$state"
  done
}

# The first certificate of a file, base64 of PEM. A private key may follow in the same file: nothing but a whole
# certificate is printed.
certificates() {
  local path text
  while IFS= read -r path; do
    if [[ -z $path ]]; then continue; fi
    text=missing
    if [[ $path == *.conf && -f $path ]]; then
      text=$(awk '$1 == "client-certificate-data:" {print $2; exit}' "$path") || text=unreadable
    elif [[ -f $path ]]; then
      text=$(awk '/^-----BEGIN/ {text = ""; keep = /^-----BEGIN CERTIFICATE-----$/}
        keep {text = text $0 "\n"}
        keep && /^-----END CERTIFICATE-----$/ {printf "%s", text; exit}' "$path" | base64 -w 0) || text=unreadable
    fi
    say certificate "$path" "$text"
  done <<<"$CERTIFICATES"
}

# The node's own copy, by which it can be wiped by hand.
scripts() {
  local name sum
  for name in $SCRIPTS; do
    sum=missing
    if [[ -f /usr/local/lib/kube-ha/$name ]]; then sum=$(sha256sum <"/usr/local/lib/kube-ha/$name" | cut -d' ' -f1); fi
    say script "$name" "$sum"
  done
}

# Of the system, and of etcd's data where those have a file system of their own.
disk() {
  local path free total mount known=""
  for path in /var/lib "$HOME_DIR/etcd"; do
    if [[ ! -d $path ]]; then continue; fi
    # a file system that hangs
    read -r total free mount < <(timeout 10 df -Pk "$path" | awk 'NR == 2 {print $2, $4, $6}') || continue
    if [[ $mount != "$known" ]]; then say disk "$free" "$total" "$path"; fi
    known=$mount
  done
}

# How this node's HAProxy finds the masters.
balancer() {
  local answer name state
  answer=$(haproxy_servers) || {
    say balancer - "$(reason "$answer")"
    return
  }
  while read -r name state; do
    if [[ -n $name ]]; then say balancer "$name" "$state"; fi
  done <<<"$answer"
}

apiserver() {
  local answer
  # the text tells
  answer=$(curl -sS --max-time 8 --noproxy '*' --cacert /etc/kubernetes/pki/ca.crt \
    "https://$ADDRESS:6443/readyz" 2>&1) || true
  say readyz "$(reason "$answer")"
}

vip() { say vip "$(has_address "$VIP")"; }

# etcdctl prints one line of JSON, warnings beside it, or why there is no answer.
member() {
  local word answer
  for word in "endpoint status" "member list"; do
    # shellcheck disable=SC2086 # two words
    answer=$(etcdctl_at 127.0.0.1 --command-timeout 6s -w json $word 2>&1) ||
      answer="no answer: $(reason "$answer")"
    if [[ $answer != "no answer"* ]]; then answer=$(grep -m 1 '^[[{]' <<<"$answer") || answer="no answer: no JSON"; fi
    say "etcd-${word##* }" "$answer"
  done
}

# Which cluster's data it has, and why it may not serve where the guard says so.
whose_data() {
  say etcd-identity "$(identity_at 127.0.0.1)"
  say etcd-refused "$(content_of "$STATE/etcd.refused")"
}

# As snapshot.sh left it: time, name, bytes and revision of the last one, when one began that has not come to its end,
# the last one that the object store has, and why a later one did not get there.
backups() {
  local timer
  # inactive is an answer, and a failure
  timer=$(timeout 10 systemctl is-active kube-ha-backup.timer 2>/dev/null) || true
  say backup-timer "${timer:-unknown}"
  if [[ -f $STATE/backup ]]; then printf 'backup\t%s\n' "$(<"$STATE/backup")"; fi
  say backup-begun "$(content_of "$STATE/backup.begun")"
  if [[ -f $STATE/backup.sent ]]; then printf 'backup-sent\t%s\n' "$(<"$STATE/backup.sent")"; fi
  if [[ -f $STATE/backup.unsent ]]; then printf 'backup-unsent\t%s\n' "$(<"$STATE/backup.unsent")"; fi
}

# kubectl keeps what it learns of the API in files; here it may not.
kubectl_readonly() {
  timeout 40 kubectl --kubeconfig /etc/kubernetes/admin.conf --request-timeout 30s --cache-dir /dev/null/none "$@" 2>&1
}

# A warning may stand before the object.
json_of() { sed -n '/^{/,$p' <<<"$1"; }

cluster() {
  local rows
  rows=$(kubectl_readonly get nodes -o json) || {
    say refused "$(reason "$rows")"
    return
  }
  nodes_json() { json_of "$rows"; }
  read_nodes ready cordoned kubelet runtime applied begun failed | sed 's/^/node|/' | tr '|' '\t'
  rows=$(kubectl_readonly -n kube-system get configmap "$RECORD_NAME" --ignore-not-found -o json) || rows=""
  RECORD=$(json_of "${rows:-"{}"}" | jq -c '.data // {}')
  if recorded known; then asked_nodes | sed 's/^/asked\t/'; fi
  rows=$(kubectl_readonly -n default get endpointslices.discovery.k8s.io kubernetes -o json) || rows=""
  json_of "$rows" | jq -r "$CLEAN"'.endpoints[]?.addresses[]? | ipv4 | select(. != "") | "endpoint\t" + .'
  rows=$(kubectl_readonly -n kube-system get configmaps kubeadm-config kubelet-config --ignore-not-found -o name) ||
    rows=""
  say settings "$(grep -c '^configmap/' <<<"$rows" || true)" # 0 is an answer, grep's status with it
}

main() {
  local word
  for word in $ASK; do
    case $word in
      machine)
        identity
        files
        compare pki "$STATE/pki.sums"
        open_keys
        units
        settled_marks
        programs
        artefacts
        certificates
        scripts
        disk
        ;;
      balancer) balancer ;;
      vip) vip ;;
      firewall) say firewall "$(filter_state)" ;;
      master)
        compare static-pods "$STATE/static-pods.sums"
        apiserver
        ;;
      member)
        member
        whose_data
        backups
        ;;
      cluster) cluster ;;
    esac
  done
  say end
}
