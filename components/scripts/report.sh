# shellcheck shell=bash
# Tells what a supporter asks of this machine, and changes nothing. `make report` runs it over plain SSH;
# operations/reports/machines.py reads the lines: "file", a name, the end of a text as base64 of gzip, tabs between.
# Secrets are cut out where it is read; no file with keys is looked at here.
# Variables: ASK (words: names of texts; one that is no other is that of a systemd unit), SINCE_S (seconds of journals),
#   BYTES (of each text)
# shellcheck source=etcdctl.sh disable=SC2154 # here: the folder of run.sh
source "$here/etcdctl.sh"

PODS=$ROOT/var/log/pods # of kubelets

give() { # give NAME, the text on stdin: its end, as much of it as fits
  local text
  text=$(tail -c "$BYTES" | gzip -c | base64 -w 0)
  printf 'file\t%s\t%s\n' "$1" "$text"
}
# A question that fails is an answer too.
asked() { timeout 60 "$@" 2>&1 || printf 'exit code %d of %s\n' "$?" "$*"; }
kubectl_here() {
  asked kubectl --kubeconfig /etc/kubernetes/admin.conf --request-timeout 50s --cache-dir /dev/null/none "$@"
}

facts() {
  printf '%s\n' "$(uname -a)" "$(date -u +%FT%TZ)" "load $(</proc/loadavg)" "up $(</proc/uptime)"
  cat "$ROOT/etc/os-release"
  head -n 3 /proc/meminfo
  asked df -h
  asked ip -br address
  asked systemctl --no-pager --plain --failed
  asked find "$STATE" -maxdepth 1 -printf '%t %s %f\n'
}
# What programs of each phase wrote the last time, each below its name.
phases() {
  local file
  for file in "$STATE"/*.log; do
    if [[ ! -f $file ]]; then continue; fi
    printf '==> %s %s\n' "${file##*/}" "$(stat -c %y "$file")"
    tail -c $((BYTES / 8)) "$file"
  done
}
members() {
  local words
  for words in "endpoint status --cluster -w table" "member list -w table" "alarm list" "endpoint health --cluster"; do
    printf '==> %s\n' "$words"
    # shellcheck disable=SC2086 # words
    etcdctl_at 127.0.0.1 $words 2>&1 || printf 'exit code %d\n' "$?"
  done
}
static_pod() { # static_pod NAME: the log of its newest container
  local file
  file=$(find "$PODS" -path "$PODS/kube-system_$1-*/*/*.log" -printf '%T@ %p\n' 2>/dev/null |
    sort -n | tail -n 1) || return 0 # it has none
  if [[ -n $file ]]; then tail -c "$BYTES" "${file#* }"; fi
}
journal() { asked journalctl --no-pager --quiet -o short-iso --since "-${SINCE_S}s" "$@"; }

told() { # told NAME
  case $1 in
    facts) facts ;;
    phases) phases ;;
    members) members ;;
    warnings) journal -p warning ;;
    kube-apiserver | kube-controller-manager | kube-scheduler) static_pod "$1" ;;
    nodes) kubectl_here get nodes -o wide ;;
    pods) kubectl_here get pods -A -o wide ;;
    events) kubectl_here get events -A --sort-by=.lastTimestamp ;;
    workloads) kubectl_here get deployments,daemonsets,statefulsets,services,poddisruptionbudgets -A -o wide ;;
    requests) kubectl_here get certificatesigningrequests ;;
    *) journal -u "$1" ;;
  esac
}

main() {
  local name
  for name in $ASK; do told "$name" | give "$name"; done
  echo end
}
