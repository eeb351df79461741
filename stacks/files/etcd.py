"""etcd as a systemd service: its environment and its unit."""

from __future__ import annotations

from stacks.plan import Node, Plan
from stacks.ports import ETCD_CLIENT_PORT, ETCD_PEER_PORT
from stacks.settings import EtcdSpec

_GIB = 1024**3

# Reasons stand here: the unit's text lies in the state several times, for every member.
# A store of the API that stays down is worse than one that tries for ever. bootstrap.env holds the
# initial cluster, written when this member is born; it is not read once there is data.
# etcd says it is ready after 5 s at the latest, with or without quorum; before that it replays its
# log, which takes its time when the log is long. Killing it there would start over, for ever.
# etcd-stopped.sh ends the API server beside a member that was removed.
_UNIT = """\
[Unit]
Description=etcd, the store of the Kubernetes API
Wants=network-online.target
After=network-online.target
StartLimitIntervalSec=0

[Service]
Type=notify
EnvironmentFile=/etc/kube-ha/etcd/etcd.env
EnvironmentFile=-/etc/kube-ha/etcd/bootstrap.env
ExecStart=/usr/local/bin/etcd
ExecStopPost=-/bin/bash /usr/local/lib/kube-ha/etcd-stopped.sh
Restart=always
RestartSec=2
TimeoutStartSec=10min
NoNewPrivileges=yes
LimitNOFILE={files}
{weight}
[Install]
WantedBy=multi-user.target
"""

_WEIGHT = """\
IOSchedulingClass=best-effort
IOSchedulingPriority=0
OOMScoreAdjust=-999
"""


def environment(plan: Plan, node: Node) -> str:
    """/etc/kube-ha/etcd/etcd.env, all but the initial cluster: that depends on who is alive."""
    return "".join(f"{name}={value}\n" for name, value in _settings(plan, node).items())


def _settings(plan: Plan, node: Node) -> dict[str, str]:
    client = f"https://{node.address}:{ETCD_CLIENT_PORT}"
    peer = f"https://{node.address}:{ETCD_PEER_PORT}"
    pki = "/etc/kube-ha/etcd"
    spec = plan.spec.etcd
    return {
        "ETCD_NAME": node.name,
        "ETCD_DATA_DIR": "/var/lib/kube-ha/etcd",
        "ETCD_LISTEN_CLIENT_URLS": f"https://127.0.0.1:{ETCD_CLIENT_PORT},{client}",
        "ETCD_ADVERTISE_CLIENT_URLS": client,
        "ETCD_LISTEN_PEER_URLS": peer,
        "ETCD_INITIAL_ADVERTISE_PEER_URLS": peer,
        "ETCD_LISTEN_METRICS_URLS": "http://127.0.0.1:2381",
        "ETCD_INITIAL_CLUSTER_TOKEN": plan.spec.cluster.name,
        "ETCD_STRICT_RECONFIG_CHECK": "true",
        "ETCD_TRUSTED_CA_FILE": f"{pki}/ca.crt",
        "ETCD_CERT_FILE": f"{pki}/server.crt",
        "ETCD_KEY_FILE": f"{pki}/server.key",
        "ETCD_CLIENT_CERT_AUTH": "true",
        "ETCD_PEER_TRUSTED_CA_FILE": f"{pki}/ca.crt",
        "ETCD_PEER_CERT_FILE": f"{pki}/peer.crt",
        "ETCD_PEER_KEY_FILE": f"{pki}/peer.key",
        "ETCD_PEER_CLIENT_CERT_AUTH": "true",
        "ETCD_TLS_MIN_VERSION": "TLS1.2",
        "ETCD_HEARTBEAT_INTERVAL": str(spec.heartbeat_interval_ms),
        "ETCD_ELECTION_TIMEOUT": str(spec.election_timeout_ms),
        "ETCD_QUOTA_BACKEND_BYTES": str(spec.quota_backend_gib * _GIB),
        # The API server compacts every 5 minutes; this is for the time when none runs.
        "ETCD_AUTO_COMPACTION_MODE": "periodic",
        "ETCD_AUTO_COMPACTION_RETENTION": _duration(spec.compaction_retention_min),
        "ETCD_SNAPSHOT_COUNT": str(spec.snapshot_count),
        # Lets the API server answer lists from its cache (KEP-2340).
        "ETCD_WATCH_PROGRESS_NOTIFY_INTERVAL": "5s",
        "ETCD_FEATURE_GATES": "InitialCorruptCheck=true",
        **_other_than_etcds_own(spec),
    }


def _other_than_etcds_own(spec: EtcdSpec) -> dict[str, str]:
    """Settings that are left out as long as they are etcd's defaults."""
    out = {}
    if spec.max_request_kib != EtcdSpec().max_request_kib:
        out["ETCD_MAX_REQUEST_BYTES"] = str(spec.max_request_kib * 1024)
    if spec.metrics != EtcdSpec().metrics:
        out["ETCD_METRICS"] = spec.metrics
    return out


def _duration(minutes: int) -> str:
    return f"{minutes}m" if minutes % 60 else f"{minutes // 60}h"


def unit(plan: Plan) -> str:
    """/etc/systemd/system/etcd.service."""
    # The lab's machines may open 20000 files at most.
    if plan.containers:
        return _UNIT.format(files=20000, weight="")
    return _UNIT.format(files=65536, weight=_WEIGHT)
