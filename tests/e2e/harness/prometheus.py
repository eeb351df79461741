"""Prometheus of a stack: what it is asked, and rules against series that make them fire."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any

from tests.e2e.harness.stack import Stack

# Of each alert: series (promtool's notation) with which it fires, and with which it does not.
Series = Mapping[str, str]
CASES: Mapping[str, tuple[Series, Series]] = {
    "EtcdQuorumAtRisk": (
        {'up{job="etcd",node="a"}': "1x200", 'up{job="etcd",node="b"}': "1x200"},
        {f'up{{job="etcd",node="{node}"}}': "1x200" for node in "abc"},
    ),
    "EtcdWithoutLeader": (
        {'etcd_server_has_leader{node="a"}': "0x200"},
        {'etcd_server_has_leader{node="a"}': "1x200"},
    ),
    "EtcdAlmostFull": (
        {
            'etcd_mvcc_db_total_size_in_bytes{node="a"}': "90x200",
            'etcd_server_quota_backend_bytes{node="a"}': "100x200",
        },
        {
            'etcd_mvcc_db_total_size_in_bytes{node="a"}': "70x200",
            'etcd_server_quota_backend_bytes{node="a"}': "100x200",
        },
    ),
    "EtcdDiskSlow": (
        {
            'etcd_disk_wal_fsync_duration_seconds_bucket{node="a",le="0.1"}': "0x200",
            'etcd_disk_wal_fsync_duration_seconds_bucket{node="a",le="0.5"}': "0+10x200",
            'etcd_disk_wal_fsync_duration_seconds_bucket{node="a",le="+Inf"}': "0+10x200",
        },
        {
            'etcd_disk_wal_fsync_duration_seconds_bucket{node="a",le="0.1"}': "0+10x200",
            'etcd_disk_wal_fsync_duration_seconds_bucket{node="a",le="0.5"}': "0+10x200",
            'etcd_disk_wal_fsync_duration_seconds_bucket{node="a",le="+Inf"}': "0+10x200",
        },
    ),
    "EtcdLeaderChanges": (
        {'etcd_server_leader_changes_seen_total{node="a"}': "0+1x200"},
        {'etcd_server_leader_changes_seen_total{node="a"}': "9x200"},
    ),
    "ApiServerMissing": (
        {'up{job="apiserver",node="a"}': "1x200", 'up{job="apiserver",node="b"}': "0x200"},
        {f'up{{job="apiserver",node="{node}"}}': "1x200" for node in "abc"},
    ),
    "ApiServerErrors": (
        {
            'apiserver_request_total{code="200"}': "0+10x200",
            'apiserver_request_total{code="500"}': "0+1x200",
        },
        {
            'apiserver_request_total{code="200"}': "0+10x200",
            'apiserver_request_total{code="404"}': "0+9x200",
        },
    ),
    "ControllerManagerWithoutLeader": (
        {'leader_election_master_status{name="kube-controller-manager",node="a"}': "0x200"},
        {'leader_election_master_status{name="kube-controller-manager",node="a"}': "1x200"},
    ),
    "SchedulerWithoutLeader": (
        {'leader_election_master_status{name="kube-scheduler",node="a"}': "0x200"},
        {'leader_election_master_status{name="kube-scheduler",node="a"}': "1x200"},
    ),
    "ClusterDnsDown": (
        {'up{job="services",service="kube-dns",pod="a"}': "0x200"},
        {'up{job="services",service="kube-dns",pod="a"}': "1x200"},
    ),
    "NodesNotReady": (
        {'node_collector_unhealthy_nodes_in_zone{zone="",node="a"}': "1x200"},
        {'node_collector_unhealthy_nodes_in_zone{zone="",node="a"}': "0x200"},
    ),
    "KubeletDown": (
        {'up{job="kubelet",node="a"}': "0x200"},
        {'up{job="kubelet",node="a"}': "1x200"},
    ),
    "ContainersKilledForMemory": (
        {'container_oom_events_total{node="a",namespace="b",pod="c"}': "0+1x200"},
        {'container_oom_events_total{node="a",namespace="b",pod="c"}': "3x200"},
    ),
    "DiskAlmostFull": (
        {
            'node_filesystem_avail_bytes{node="a",fstype="ext4",mountpoint="/"}': "5x200",
            'node_filesystem_size_bytes{node="a",fstype="ext4",mountpoint="/"}': "100x200",
        },
        {
            'node_filesystem_avail_bytes{node="a",fstype="tmpfs",mountpoint="/run"}': "5x200",
            'node_filesystem_size_bytes{node="a",fstype="tmpfs",mountpoint="/run"}': "100x200",
        },
    ),
    "ClockOff": (
        {'node_timex_offset_seconds{node="a"}': "-1x200"},
        {'node_timex_offset_seconds{node="a"}': "0x200", 'node_timex_sync_status{node="a"}': "1x200"},
    ),
    "MasterUnseenByNode": (
        {'kube_ha_haproxy_server_up{node="a",server="b"}': "0x200"},
        {'kube_ha_haproxy_server_up{node="a",server="b"}': "1x200"},
    ),
    # Time begins at 0 there.
    "CertificateEnds": (
        {'kube_ha_certificate_not_after_seconds{node="a",path="/b"}': "86400x200"},
        {'kube_ha_certificate_not_after_seconds{node="a",path="/b"}': "8640000x200"},
    ),
    "BackupOld": (
        {'kube_ha_backup_seconds{node="a"}': "-90000x200"},
        {'kube_ha_backup_seconds{node="a"}': "0x200", 'kube_ha_backup_seconds{node="b"}': "-90000x200"},
    ),
    "BackupMissing": (
        {'up{job="node",node="a"}': "1x2000"},
        {'kube_ha_backup_seconds{node="a"}': "0x2000"},
    ),
    "VipWithoutOwner": (
        {'kube_ha_vip_owner{node="a"}': "0x200", 'kube_ha_vip_owner{node="b"}': "0x200"},
        {'kube_ha_vip_owner{node="a"}': "1x200", 'kube_ha_vip_owner{node="b"}': "0x200"},
    ),
    "VipWithSeveralOwners": (
        {'kube_ha_vip_owner{node="a"}': "1x200", 'kube_ha_vip_owner{node="b"}': "1x200"},
        {'kube_ha_vip_owner{node="a"}': "0x200", 'kube_ha_vip_owner{node="b"}': "1x200"},
    ),
    "AgentBehind": (
        {'prometheus_remote_storage_samples_failed_total{node="a"}': "0+1x200"},
        {'prometheus_remote_storage_samples_failed_total{node="a"}': "7x200"},
    ),
}  # fmt: skip
_LATER = 45  # minutes after the rule's own


def rule_tests(rules: str, waits: Mapping[str, str]) -> dict[str, object]:
    """A file of `promtool test rules`: each alert fires with its series, and not with the others.

    `waits`: how long each alert has to be so, as `30m`.
    """
    return {
        "rule_files": [rules],
        "evaluation_interval": "30s",
        "tests": [
            {
                "name": f"{alert} {'fires' if fires else 'is silent'}",
                "interval": "30s",
                "input_series": [
                    {"series": name, "values": values} for name, values in series.items()
                ],
                "promql_expr_test": [
                    {
                        "expr": f'count(ALERTS{{alertname="{alert}",alertstate="firing"}})',
                        "eval_time": f"{int(waits[alert].removesuffix('m')) + _LATER}m",
                        "exp_samples": [{"labels": "{}", "value": 1}] if fires else [],
                    }
                ],
            }
            for alert, pair in CASES.items()
            for fires, series in zip((True, False), pair, strict=True)
        ],
    }


class Prometheus:
    """Asked from a control plane node, by its password."""

    def __init__(self, stack: Stack) -> None:
        self.stack = stack

    def get(self, path: str, server: int = 0, **parameters: str) -> Any:
        """`data` of its answer. Raises LabError where there is none."""
        return json.loads(self.text(f"/api/v1/{path}", server, **parameters))["data"]

    def text(self, path: str, server: int = 0, **parameters: str) -> str:
        """Of a page, or of its API."""
        words = [
            f"--data-urlencode {shlex.quote(f'{name}={value}')}"
            for name, value in parameters.items()
        ]
        return self._curl(f"--fail -G {' '.join(words)} -K /run/kube-ha-test.curl", path, server)

    def status_without_password(self) -> str:
        """Of HTTP, for somebody who knows only where it is."""
        return self._curl("-o /dev/null -w '%{http_code}'", "/api/v1/query?query=up", 0)

    def values(self, query: str, *labels: str) -> dict[tuple[str, ...], float]:
        """Answers of an instant query, by the values of these labels."""
        found = self.get("query", query=query)["result"]
        return {
            tuple(one["metric"].get(label, "") for label in labels): float(one["value"][1])
            for one in found
        }

    def without(self, targets: set[tuple[str, str]]) -> str:
        """Empty where agents measure these, (job, node), and no others; else what differs."""
        found = self.values('up{job!~"pods|services|prometheus"}', "job", "node")
        down = {pair for pair, value in found.items() if value != 1}
        wrong = sorted(targets ^ found.keys() | down)
        return ", ".join(map("/".join, wrong))

    def firing(self) -> set[str]:
        """Names of alerts."""
        alerts = self.get("alerts")["alerts"]
        return {one["labels"]["alertname"] for one in alerts if one["state"] == "firing"}

    def _curl(self, words: str, path: str, server: int) -> str:
        where = ("-n", "kube-system", "get")
        address = self.stack.kubectl(
            *where, "pod", f"prometheus-{server}", "-o", "jsonpath={.status.podIP}"
        )
        password = self.stack.kubectl(
            *where, "secret", "prometheus-access", "-o", "go-template={{.data.password | base64decode}}"
        )  # fmt: skip
        master = self.stack.node("master-1")
        master.put("/run/kube-ha-test.curl", f'user = "prometheus:{password}"\n')
        return master.run(f"curl -sS --max-time 10 {words} http://{address}:9090{path}")
