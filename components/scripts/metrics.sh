#!/usr/bin/env bash
# What no program of this machine tells Prometheus: until when its certificates are valid, how old the last snapshot of
# etcd is, which API servers its HAProxy reaches, and whether it has the virtual IP. kube-ha-metrics.timer runs it every
# minute; node-exporter of add-on prometheus reads /run/kube-ha-metrics/*.prom. Phase node sources this for the timer.
# In the unit: VIP, an address; empty where the stack has none.
ROOT=${ROOT:-}
METRICS_UNITS=("$ROOT/etc/systemd/system/kube-ha-metrics.service" "$ROOT/etc/systemd/system/kube-ha-metrics.timer")

measure() {
  if [[ -z ${METRICS:-} ]]; then
    if [[ -e ${METRICS_UNITS[1]} ]]; then
      forget_metrics
      changes=$((changes + 1))
      log "the timer of kube-ha's own metrics stopped"
    fi
    return
  fi
  # RuntimeDirectory: what was measured before a reboot is gone with it.
  put 644 "${METRICS_UNITS[0]}" <<<"[Unit]
Description=What no other program tells Prometheus of this machine

[Service]
Type=oneshot
Environment=VIP=${METRICS_VIP:-}
ExecStart=/bin/bash /usr/local/lib/kube-ha/metrics.sh
RuntimeDirectory=kube-ha-metrics
RuntimeDirectoryMode=0755
RuntimeDirectoryPreserve=yes
TimeoutStartSec=50
Nice=10
LogLevelMax=notice"
  put 644 "${METRICS_UNITS[1]}" <<<"[Unit]
Description=What no other program tells Prometheus of this machine, every minute

[Timer]
OnActiveSec=5
OnUnitInactiveSec=60
AccuracySec=5

[Install]
WantedBy=timers.target"
  settle restart kube-ha-metrics.timer "${METRICS_UNITS[@]}"
}

forget_metrics() {
  if [[ ! -e ${METRICS_UNITS[1]} ]]; then return; fi
  systemctl disable -q --now kube-ha-metrics.timer 2>/dev/null
  rm -rf "${METRICS_UNITS[@]}" "$STATE/kube-ha-metrics.timer.sum" "$ROOT/run/kube-ha-metrics"
  systemctl daemon-reload
}

# family NAME WORDS: what follows is of this name. All of them are values that go up and down.
family() { printf '# HELP %s %s\n# TYPE %s gauge\n' "$1" "$2" "$1"; }

# Of certificates alone: what is read of a kubeconfig, and of a file with a key in it, is the certificate.
certificate_ends() {
  local path pem end
  family kube_ha_certificate_not_after_seconds "Time until which the certificate of a file is valid."
  for path in "$ROOT"/etc/kubernetes/pki/*.crt "$ROOT"/etc/kubernetes/*.conf "$ROOT"/etc/kube-ha/*.crt \
    "$ROOT"/etc/kube-ha/etcd/*.crt "$ROOT"/var/lib/kubelet/pki/kubelet-*-current.pem; do
    if [[ ! -f $path ]]; then continue; fi
    if [[ $path == *.conf ]]; then
      pem=$(awk '$1 == "client-certificate-data:" {print $2; exit}' "$path" | base64 -d 2>/dev/null) || continue
    else
      pem=$(sed -n '/^-----BEGIN CERTIFICATE-----$/,/^-----END CERTIFICATE-----$/p' "$path")
    fi
    end=$(openssl x509 -noout -enddate <<<"$pem" 2>/dev/null) || continue
    end=$(date -d "${end#notAfter=}" +%s) || continue
    printf 'kube_ha_certificate_not_after_seconds{path="%s"} %s\n' "${path#"$ROOT"}" "$end"
  done
}

# As snapshot.sh left it: its time stands first.
last_backup() {
  local at
  if [[ ! -f $STATE/backup ]]; then return; fi
  read -r at _ <"$STATE/backup" || return 0
  family kube_ha_backup_seconds "Time of the last snapshot of etcd that this machine made."
  printf 'kube_ha_backup_seconds %s\n' "$at"
}

reached_masters() {
  local answer name state up
  answer=$(haproxy_servers) || return 0
  family kube_ha_haproxy_server_up "Whether this machine's HAProxy gets good answers of an API server."
  while read -r name state; do
    if [[ -z $name ]]; then continue; fi
    up=0
    if [[ $state == UP* ]]; then up=1; fi
    printf 'kube_ha_haproxy_server_up{server="%s"} %s\n' "$name" "$up"
  done <<<"$answer"
}

vip_owner() {
  if [[ -z $VIP ]]; then return; fi
  family kube_ha_vip_owner "Whether this machine has the virtual IP."
  printf 'kube_ha_vip_owner %s\n' "$(has_address "$VIP")"
}

if [[ ${BASH_SOURCE[0]:-} == "$0" ]]; then
  set -euo pipefail
  export LC_ALL=C PATH=/usr/local/sbin:/usr/local/bin:$PATH
  STATE=$ROOT/var/lib/kube-ha/state
  here=$(dirname "${BASH_SOURCE[0]}")
  # shellcheck source=api-view.sh
  source "$here/api-view.sh"
  into=$ROOT/run/kube-ha-metrics
  umask 022
  {
    certificate_ends
    last_backup
    reached_masters
    vip_owner
  } >"$into/.kube-ha.prom.new"
  mv -f "$into/.kube-ha.prom.new" "$into/kube-ha.prom"
fi
