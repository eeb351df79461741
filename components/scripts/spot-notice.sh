#!/usr/bin/env bash
# A spot machine of a cloud that says before it takes one away (AWS): its pods are evicted within that time, by the
# node's own kubelet identity. The node stays cordoned, for the machine does not come back. kube-ha-spot-notice.service
# runs this; phase node sources it for the unit.
# In the unit: NODE.
ROOT=${ROOT:-}
NOTICE_UNIT=$ROOT/etc/systemd/system/kube-ha-spot-notice.service

await_notice() {
  if [[ -z ${SPOT_NOTICE:-} ]]; then
    if [[ -e $NOTICE_UNIT ]]; then
      systemctl disable -q --now kube-ha-spot-notice 2>/dev/null
      rm -f "$NOTICE_UNIT" "$STATE/kube-ha-spot-notice.service.sum"
      systemctl daemon-reload
      changes=$((changes + 1))
    fi
    return
  fi
  put 644 "$NOTICE_UNIT" <<<"[Unit]
Description=evicts the pods of this machine when the cloud says that it takes it away
After=network-online.target haproxy.service
StartLimitIntervalSec=0

[Service]
Environment=NODE=$NODE
ExecStart=/bin/bash /usr/local/lib/kube-ha/spot-notice.sh
Restart=always
RestartSec=5

[Install]
WantedBy=multi-user.target"
  # shellcheck disable=SC2154 # `here` is run.sh's folder, of which it runs a copy
  settle restart kube-ha-spot-notice.service "$NOTICE_UNIT" "$here"/{spot-notice,update}.sh
}

METADATA=http://169.254.169.254/latest
NOTICE_S=120 # EC2 user guide, "Spot Instance interruption notices"
LOOK_S=5     # as often as AWS recommends
notice() {   # what the cloud says; fails where it says nothing
  local token
  token=$(curl -fsS --max-time 2 --noproxy '*' -X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 60' \
    "$METADATA/api/token" 2>/dev/null) || return 1
  # 404 as long as there is none
  curl -fsS --max-time 2 --noproxy '*' -H "X-aws-ec2-metadata-token: $token" \
    "$METADATA/meta-data/spot/instance-action" 2>/dev/null
}

# Seconds until the machine ends, of the notice's own time where it can be read.
seconds_left() { # seconds_left NOTICE
  local at left
  at=$(jq -r '.time // ""' <<<"$1" 2>/dev/null) || at=""
  left=$(($(date -u -d "${at:-now + $NOTICE_S seconds}" +%s 2>/dev/null || echo 0) - $(date +%s)))
  if ((left < 0 || left > NOTICE_S)); then left=$NOTICE_S; fi
  printf '%s\n' "$left"
}

empty_before_end() { # empty_before_end NOTICE
  local end left
  # What is evicted has to have ended before the machine does.
  end=$((SECONDS + $(seconds_left "$1") - 5))
  log "the cloud takes this machine away, its pods are evicted: $(plain <<<"${1:0:200}")"
  cordon_self "the cloud takes this machine away"
  left=$(pods_left "$end")
  log "${left:-all pods have gone}"
}

if [[ ${BASH_SOURCE[0]:-} == "$0" ]]; then
  here=$(dirname "${BASH_SOURCE[0]}")
  # shellcheck source=lib.sh
  source "$here/lib.sh"
  # shellcheck source=cluster-reader.sh
  source "$here/cluster-reader.sh"
  # shellcheck source=update.sh
  source "$here/update.sh"
  NODE_JSON=$RUN/spot-node.json # an update of the node may be under way
  install -d -m 700 "$RUN"
  until said=$(notice); do sleep "$LOOK_S"; done
  if joined; then empty_before_end "$said"; fi
  sleep infinity # nothing is left to do, and systemd would begin again
fi
