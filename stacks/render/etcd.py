"""etcd as a systemd service: its environment and its unit."""

from __future__ import annotations

from stacks.cluster.plan import Node, Plan
from stacks.config.etcd import EtcdSpec
from stacks.config.fields import STRONG_CIPHERS
from stacks.config.ports import ETCD_CLIENT_PORT, ETCD_PEER_PORT

_GIB = 1024**3

# Reasons stand here: the unit's text lies in the state several times, for every member.
# A store of the API that stays down is worse than one that tries for ever. bootstrap.env holds the
# initial cluster, written when this member is born; it is not read once there is data.
# etcd-guard.sh says whether it may start, and once it has whether its data is the cluster's; the
# folder may be a disk of its own, without which nothing starts either.
# etcd says it is ready after 5 s at the latest, with or without quorum; before that it replays its
# log, which takes its time when the log is long. Killing it there would start over, for ever.
# etcd-stopped.sh ends the API server beside a member that was removed; it acts on what is root's.
# Whatever made data and keys (a restore, a copy, an etcd that ran as root, a disk of a machine that
# has other numbers for its accounts): they are etcd's own before etcd starts.
# What etcd trusts and proves stands in its command line: tools that judge a machine read it there.
# etcd takes no setting from both, so none of these is in its environment.
_UNIT = """\
[Unit]
Description=etcd, the store of the Kubernetes API
Wants=network-online.target
After=network-online.target
StartLimitIntervalSec=0
RequiresMountsFor=/var/lib/kube-ha/etcd

[Service]
Type=notify
EnvironmentFile=/etc/kube-ha/etcd/etcd.env
EnvironmentFile=-/etc/kube-ha/etcd/bootstrap.env
ExecStartPre=+/bin/chown -R etcd:etcd {data} {keys}
ExecStartPre=+/bin/bash /usr/local/lib/kube-ha/etcd-guard.sh before
ExecStart=/usr/local/bin/etcd {flags}
ExecStartPost=+/bin/bash /usr/local/lib/kube-ha/etcd-guard.sh after
ExecStopPost=-+/bin/bash /usr/local/lib/kube-ha/etcd-stopped.sh
User=etcd
Group=etcd
Restart=always
RestartSec=2
TimeoutStartSec=10min
NoNewPrivileges=yes
CapabilityBoundingSet=
ProtectSystem=strict
ReadWritePaths={data}
ProtectHome=yes
PrivateTmp=yes
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

DATA = "/var/lib/kube-ha/etcd"
_PKI = "/etc/kube-ha/etcd"
# The same on every member.
FLAGS = {
    "data-dir": DATA,
    "client-cert-auth": "true",
    "trusted-ca-file": f"{_PKI}/ca.crt",
    "cert-file": f"{_PKI}/server.crt",
    "key-file": f"{_PKI}/server.key",
    "peer-client-cert-auth": "true",
    "peer-trusted-ca-file": f"{_PKI}/ca.crt",
    "peer-cert-file": f"{_PKI}/peer.crt",
    "peer-key-file": f"{_PKI}/peer.key",
}


def environment(plan: Plan, node: Node) -> str:
    """/etc/kube-ha/etcd/etcd.env, all but the initial cluster: that depends on who is alive."""
    return "".join(f"{name}={value}\n" for name, value in _settings(plan, node).items())


def _settings(plan: Plan, node: Node) -> dict[str, str]:
    client = f"https://{node.address}:{ETCD_CLIENT_PORT}"
    peer = f"https://{node.address}:{ETCD_PEER_PORT}"
    spec = plan.spec.etcd
    return {
        "ETCD_NAME": node.name,
        "ETCD_LISTEN_CLIENT_URLS": f"https://127.0.0.1:{ETCD_CLIENT_PORT},{client}",
        "ETCD_ADVERTISE_CLIENT_URLS": client,
        "ETCD_LISTEN_PEER_URLS": peer,
        "ETCD_INITIAL_ADVERTISE_PEER_URLS": peer,
        "ETCD_LISTEN_METRICS_URLS": "http://127.0.0.1:2381",
        # Without data it joins, or does not start: founding is a word of bootstrap.env alone.
        "ETCD_INITIAL_CLUSTER_STATE": "existing",
        "ETCD_STRICT_RECONFIG_CHECK": "true",
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
    if spec.tls_ciphers == "strong":
        out["ETCD_CIPHER_SUITES"] = ",".join(STRONG_CIPHERS)
    if spec.metrics != EtcdSpec().metrics:
        out["ETCD_METRICS"] = spec.metrics
    return out


def _duration(minutes: int) -> str:
    return f"{minutes}m" if minutes % 60 else f"{minutes // 60}h"


def unit(plan: Plan) -> str:
    """/etc/systemd/system/etcd.service."""
    flags = " ".join(f"--{name}={value}" for name, value in FLAGS.items())
    # The lab's machines may open 20000 files at most.
    files, weight = (20000, "") if plan.containers else (65536, _WEIGHT)
    keys = " ".join(value for name, value in FLAGS.items() if name.endswith("key-file"))
    return _UNIT.format(data=DATA, keys=keys, flags=flags, files=files, weight=weight)
