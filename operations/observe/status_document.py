"""The state of a cluster for programs: keys as documented in docs/operate/drift.md, which stay."""

from __future__ import annotations

from datetime import UTC, datetime

from operations.observe import backups, overview
from operations.observe.observation import Look
from operations.observe.overview import Etcd, NodeState
from stacks.version import VERSION


def document(seen: Look) -> dict[str, object]:
    """Plain JSON values; what is not known is null."""
    view, findings = overview.of(seen), seen.findings
    first = view.first_to_end
    return {
        "programVersion": VERSION,
        "stack": seen.stack,
        "cluster": seen.plan.spec.cluster.name,
        "kubernetes": seen.plan.versions.kubernetes,
        "endpoint": f"https://{seen.plan.endpoint}",
        "api": {
            "answers": findings.cluster is not None,
            "readyMasters": list(view.ready_masters),
            "trouble": findings.trouble or None,
        },
        "nodes": {one.node.name: _node(one) for one in view.nodes},
        "away": {node.name: node.state for node in seen.plan.away},
        "etcd": _etcd(view.etcd),
        "loadBalancers": {
            "told": view.balancers,
            "down": {master: list(nodes) for master, nodes in view.down.items()},
        },
        "virtualIp": {"address": seen.plan.vip, "holders": list(view.holders)}
        if seen.plan.holders
        else None,
        "firstCertificateToEnd": None
        if first is None
        else {
            "where": first.where,
            "path": first.path,
            "ends": first.certificate.ends.isoformat(),
            "days": (first.certificate.ends - seen.now).days,
        },
        "lastBackup": _backup(seen),
        "lastBackupSent": _sent(seen),
        "notApplied": list(seen.not_applied),
        "differences": seen.report.count,
        "clusterDifferences": len(seen.report.cluster),
    }


def _node(one: NodeState) -> dict[str, object]:
    return {
        "pool": one.node.pool,
        "roles": list(one.node.roles),
        "address": one.node.address,
        "state": one.state,
        "versions": dict(one.versions),
        "units": dict(one.units),
        "certificateDays": one.days_left,
        "diskFreePercent": one.disk_free,
        "differences": one.differences,
    }


def _backup(seen: Look) -> dict[str, object] | None:
    newest = backups.last(seen.findings)
    if newest is None:
        return None
    name, one = newest
    return {
        "node": name,
        "name": one.name,
        "time": datetime.fromtimestamp(one.time_s, UTC).isoformat(),
        "bytes": one.size,
        "revision": one.revision,
    }


def _sent(seen: Look) -> dict[str, object] | None:
    one = backups.sent(seen.findings)
    if one is None:
        return None
    return {"name": one.name, "time": datetime.fromtimestamp(one.time_s, UTC).isoformat()}


def _etcd(found: Etcd) -> dict[str, object]:
    return {
        "quorum": found.members is not None,
        "members": None
        if found.members is None
        else [
            {
                "name": member.name,
                "peerUrl": member.peer_url,
                "isLearner": member.is_learner,
            }
            for member in found.members
        ],
        "status": {
            name: {
                "version": status.version,
                "raftIndex": status.raft_index,
                "bytes": status.size,
                "bytesInUse": status.in_use,
                "quotaBytes": status.quota,
                "errors": list(status.errors),
            }
            for name, status in found.status.items()
        },
        "leader": found.leader or None,
        "alarms": [str(alarm) for alarm in found.alarms],
        "strangers": list(found.strangers),
        "canLose": max(0, found.tolerance) if found.members is not None else 0,
    }
