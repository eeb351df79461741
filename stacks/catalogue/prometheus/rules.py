"""Alerts of what kills clusters. Each has its section in docs/operate/alerts.md."""

from __future__ import annotations

from dataclasses import dataclass

from stacks.catalogue.entry import Wanted
from stacks.documents.kubernetes_objects import Document

_PAGE = "docs/operate/alerts.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """One rule: when `expression` has had an answer for so long, somebody is told."""

    name: str
    expression: str  # PromQL
    minutes: int  # for which it has to be so
    severity: str  # critical: clients notice, or the next failure makes them; warning: in days
    summary: str  # one sentence; {{ $labels.node }} and {{ $value }} as Prometheus fills them in


def alerts(wanted: Wanted) -> tuple[Alert, ...]:
    """All of a cluster, in the order in which they stand on the page."""
    return (*_etcd(wanted), *_control_plane(wanted), *_nodes(), *_facts(wanted), *_monitor())


def document(wanted: Wanted) -> Document:
    """The file of rules that the server reads."""
    rules = [
        {
            "alert": one.name,
            "expr": one.expression,
            "for": f"{one.minutes}m",
            "labels": {"severity": one.severity},
            "annotations": {"summary": one.summary, "page": f"{_PAGE}#{one.name.lower()}"},
        }
        for one in alerts(wanted)
    ]
    return {"groups": [{"name": "kube-ha", "rules": rules}]}


def _etcd(wanted: Wanted) -> tuple[Alert, ...]:
    """None where etcd is on machines of its own, where no agent runs."""
    if not wanted.etcd:
        return ()
    return (*_quorum(wanted.etcd), *_member())


def _quorum(members: int) -> tuple[Alert, ...]:
    if members == 1:
        return ()
    least = members // 2 + 1
    return (
        Alert(
            name="EtcdQuorumAtRisk",
            expression=f'(sum(up{{job="etcd"}}) or vector(0)) < {min(members, least + 1)}',
            minutes=2,
            severity="critical",
            summary=f"{{{{ $value }}}} of {members} members of etcd answer, and {least} are "
            "needed: the next failure ends all writes.",
        ),
    )


def _member() -> tuple[Alert, ...]:
    size = "etcd_mvcc_db_total_size_in_bytes"
    slow = "histogram_quantile(0.99, rate(etcd_disk_wal_fsync_duration_seconds_bucket[5m]))"
    moved = "max(increase(etcd_server_leader_changes_seen_total[1h]))"
    return (
        Alert(
            name="EtcdWithoutLeader",
            expression="etcd_server_has_leader == 0",
            minutes=1,
            severity="critical",
            summary="The etcd member on {{ $labels.node }} has no leader: nothing can be written.",
        ),
        Alert(
            name="EtcdAlmostFull",
            expression=f"{size} / etcd_server_quota_backend_bytes > 0.8",
            minutes=5,
            severity="critical",
            summary="etcd on {{ $labels.node }} has used {{ $value | humanizePercentage }} of its "
            "quota; at 100 % the cluster is read-only.",
        ),
        Alert(
            name="EtcdDiskSlow",
            expression=f"{slow} > 0.1",
            minutes=10,
            severity="warning",
            summary="99 % of etcd's syncs on {{ $labels.node }} take up to "
            "{{ $value | humanizeDuration }}; above 0.1 s leaders are lost.",
        ),
        Alert(
            name="EtcdLeaderChanges",
            expression=f"{moved} > 3",
            minutes=5,
            severity="warning",
            summary="etcd's leader has changed {{ $value | humanize }} times within an hour.",
        ),
    )


def _control_plane(wanted: Wanted) -> tuple[Alert, ...]:
    return (
        Alert(
            name="ApiServerMissing",
            expression=f'(sum(up{{job="apiserver"}}) or vector(0)) < {wanted.masters}',
            minutes=2,
            severity="critical" if wanted.masters < 2 else "warning",
            summary=f"{{{{ $value }}}} of {wanted.masters} API servers answer.",
        ),
        Alert(
            name="ApiServerErrors",
            expression='sum(rate(apiserver_request_total{code=~"5.."}[5m])) '
            "/ sum(rate(apiserver_request_total[5m])) > 0.05",
            minutes=5,
            severity="critical",
            summary="{{ $value | humanizePercentage }} of the requests to API servers fail there.",
        ),
        *(
            Alert(
                name=f"{word}WithoutLeader",
                expression=f'(max(leader_election_master_status{{name="{name}"}}) or vector(0)) '
                "< 1",
                minutes=3,
                severity="critical",
                summary=f"No {name} leads: {lost}.",
            )
            for word, name, lost in (
                (
                    "ControllerManager",
                    "kube-controller-manager",
                    "nodes that die are not noticed, and no pod is replaced",
                ),
                ("Scheduler", "kube-scheduler", "no new pod gets a node"),
            )
        ),
        Alert(
            name="ClusterDnsDown",
            expression='(sum(up{job="services",service="kube-dns"}) or vector(0)) < 1',
            minutes=2,
            severity="critical",
            summary="No CoreDNS answers: pods find no Service by its name.",
        ),
    )


def _nodes() -> tuple[Alert, ...]:
    free = 'node_filesystem_avail_bytes{fstype!~"tmpfs|overlay|ramfs"}'
    whole = 'node_filesystem_size_bytes{fstype!~"tmpfs|overlay|ramfs"}'
    return (
        Alert(
            name="NodesNotReady",
            expression="sum(max by (zone) (node_collector_unhealthy_nodes_in_zone)) > 0",
            minutes=2,
            severity="warning",
            summary="{{ $value }} nodes are not ready; kubectl get nodes names them.",
        ),
        Alert(
            name="KubeletDown",
            expression='up{job="kubelet"} == 0',
            minutes=3,
            severity="warning",
            summary="The kubelet of {{ $labels.node }} does not answer on its own node.",
        ),
        Alert(
            name="ContainersKilledForMemory",
            expression="sum by (node, namespace, pod) "
            "(increase(container_oom_events_total[15m])) > 0",
            minutes=0,
            severity="warning",
            summary="{{ $labels.namespace }}/{{ $labels.pod }} on {{ $labels.node }} was killed "
            "for its memory.",
        ),
        Alert(
            name="DiskAlmostFull",
            expression=f"{free} / {whole} < 0.1",
            minutes=10,
            severity="critical",
            summary="{{ $labels.mountpoint }} of {{ $labels.node }} has "
            "{{ $value | humanizePercentage }} left; below 10 % kubelets evict pods.",
        ),
        Alert(
            name="ClockOff",
            expression="abs(node_timex_offset_seconds) > 0.5 or node_timex_sync_status == 0",
            minutes=30,
            severity="warning",
            summary="The clock of {{ $labels.node }} is not in step.",
        ),
    )


def _facts(wanted: Wanted) -> tuple[Alert, ...]:
    """Of what nodes tell of themselves (components/scripts/metrics.sh)."""
    every_h = wanted.spec.etcd.backup.every_hours
    return (
        Alert(
            name="MasterUnseenByNode",
            expression="kube_ha_haproxy_server_up == 0",
            minutes=2,
            severity="warning",
            summary="HAProxy on {{ $labels.node }} does not reach the API server of "
            "{{ $labels.server }}.",
        ),
        Alert(
            name="CertificateEnds",
            expression="kube_ha_certificate_not_after_seconds - time() < 21 * 86400",
            minutes=30,
            severity="critical",
            summary="{{ $labels.path }} on {{ $labels.node }} is valid for "
            "{{ $value | humanizeDuration }} more; pulumi up renews it.",
        ),
        *(_backups(every_h) if wanted.etcd and every_h else ()),
        *(_vip() if wanted.keepalived else ()),
    )


def _backups(every_h: int) -> tuple[Alert, Alert]:
    """Of a timer that runs every so many hours."""
    most_h = 2 * every_h
    made = f"and one is made every {every_h} h."
    return (
        Alert(
            name="BackupOld",
            expression=f"time() - max(kube_ha_backup_seconds) > {most_h * 3600}",
            minutes=15,
            severity="critical",
            summary="The newest snapshot of etcd is {{ $value | humanizeDuration }} old, " + made,
        ),
        # A new cluster has none before the timer's first hour.
        Alert(
            name="BackupMissing",
            expression="absent(kube_ha_backup_seconds)",
            minutes=most_h * 60,
            severity="critical",
            summary="No member of etcd has a snapshot, " + made,
        ),
    )


def _vip() -> tuple[Alert, Alert]:
    owners = "(sum(kube_ha_vip_owner) or vector(0))"
    return (
        Alert(
            name="VipWithoutOwner",
            expression=f"{owners} < 1",
            minutes=1,
            severity="critical",
            summary="No machine has the virtual IP: clients from outside reach no API server.",
        ),
        Alert(
            name="VipWithSeveralOwners",
            expression=f"{owners} > 1",
            minutes=1,
            severity="critical",
            summary="{{ $value }} machines have the virtual IP: clients reach one or another.",
        ),
    )


def _monitor() -> tuple[Alert, ...]:
    return (
        Alert(
            name="AgentBehind",
            expression="rate(prometheus_remote_storage_samples_failed_total[10m]) > 0 or "
            "rate(prometheus_remote_storage_samples_dropped_total[10m]) > 0",
            minutes=10,
            severity="warning",
            summary="The agent on {{ $labels.node }} loses measurements.",
        ),
        Alert(
            name="Watchdog",
            expression="vector(1)",
            minutes=0,
            severity="none",
            summary="Always there: who does not hear it any more has lost this Prometheus.",
        ),
    )
