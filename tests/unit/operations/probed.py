"""Made-up answers of machines, in the words of probe.sh: those of a cluster as planned, then edited."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from operations.observe import answers, differences, expected
from operations.observe.expected import Expected
from operations.observe.observation import Look
from operations.observe.probe import Findings, Found
from stacks.cluster.artifacts import File
from stacks.cluster.plan import Node, Plan

NOW = datetime(2027, 6, 1, 12, tzinfo=UTC)
CLUSTER_ID = "0123456789ab"
CLUSTER = 14841639068965178418  # of etcd
GOOD_DAYS = 300
NAMES = ("kubelet", "kubeadm", "kubectl", "containerd", "runc", "cni-plugins", "etcd")
FILES = {
    name: File(name=name, version="1", url="u", upstream="u", sha256=f"{number:064x}", published="")
    for number, name in enumerate(NAMES)
}

# Field after field of a line's start -> the line in its place; None: no such line. A start that no
# line has adds the line.
Edits = Mapping[str, str | None]


@cache
def certificate(days: float, life_days: int = 365) -> str:
    """PEM of a certificate that ends so many days after NOW."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "made-up")])
    ends = NOW + timedelta(days=days)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(ends - timedelta(days=life_days))
        .not_valid_after(ends)
        .sign(key, hashes.SHA256())
    )
    return made.public_bytes(serialization.Encoding.PEM).decode()


CA = certificate(3650, 3650)


def line(*fields: object) -> str:
    return "\t".join(str(field) for field in fields)


def b64(days: float, life_days: int = 365) -> str:
    """A certificate as the probe sends it."""
    return base64.b64encode(certificate(days, life_days).encode()).decode()


def member_id(plan: Plan, name: str) -> int:
    return 1000 + [node.name for node in plan.etcd].index(name)


def member_list(plan: Plan, *names: str, **more: object) -> str:
    """etcdctl's JSON of these members; `more` is added to the last."""
    members: list[dict[str, object]] = [
        {
            "ID": member_id(plan, name),
            "name": name,
            "peerURLs": [f"https://{plan.node(name).address}:2380"],
        }
        for name in names
    ]
    members[-1] |= more
    return json.dumps({"header": {"member_id": 1000}, "members": members})


def member_status(plan: Plan, name: str, **edits: object) -> str:
    status = {
        "header": {"member_id": member_id(plan, name), "cluster_id": CLUSTER},
        "version": plan.versions.etcd,
        "dbSize": 5 * 1024**2,
        "leader": member_id(plan, plan.etcd[0].name),
        "raftIndex": 4711,
        "dbSizeQuota": 2 * 1024**3,
    }
    return json.dumps([{"Endpoint": "https://127.0.0.1:2379", "Status": status | edits}])


def hours_ago(hours: float) -> int:
    """Epoch, so many hours before NOW."""
    return int((NOW - timedelta(hours=hours)).timestamp())


def backed_up(hours: float) -> str:
    """The line of a snapshot that was saved so many hours before NOW."""
    return line(
        "backup",
        hours_ago(hours),
        "dev-20270601T093000Z-4711-schedule.db.enc",
        3 * 1024**2,
        4711,
        "",
    )


def machine(plan: Plan, node: Node, wanted: Expected, edits: Edits) -> str:
    """All lines of the probe of a machine as planned, but for `edits`."""
    masters = [master.name for master in plan.masters]
    lines = [
        line("clock", "1000.5"),
        line("owner", wanted.owner),
        line("applied", wanted.applied),
        line("incarnation", wanted.incarnation if wanted.incarnation > 1 else ""),
        line("busy", 0),
        *(line("file", path, sum_) for path, sum_ in wanted.files.items()),
        line("sums", "pki", "missing" if node.is_worker else "kept"),
        *(line("sums", f"{unit}.service", "kept") for unit in wanted.units),
        *(line("unit", unit, "active", "enabled", 900, 0) for unit in wanted.units),
        *(line("mark", name, "settled") for name in wanted.settled),
        *(line("program", name, f"{name} v{is_}") for name, is_ in wanted.programs.items()),
        *(line("artefact", name, sum_, "untouched") for name, sum_ in wanted.artefacts.items()),
        *(
            line("certificate", path, "missing" if kind == "unwanted" else b64(GOOD_DAYS))
            for path, kind in wanted.certificates.items()
        ),
        *(line("script", phase, sum_) for phase, sum_ in wanted.scripts.items()),
        line("disk", 8000, 10000),
        *(
            line("balancer", name, "UP")
            for name in masters
            if node.in_kubernetes or node.is_load_balancer
        ),
        *([line("sums", "static-pods", "kept"), line("readyz", "ok")] if node.is_master else []),
    ]
    if "kube-ha-firewall" in wanted.units:
        lines.append(line("firewall", "kept"))
    if wanted.vip:
        lines.append(line("vip", 1 if node.name == plan.holders[0].name else 0))
    if node.is_etcd:
        lines.append(line("etcd-status", member_status(plan, node.name)))
        lines.append(line("etcd-list", member_list(plan, *(one.name for one in plan.etcd))))
        lines.append(line("etcd-identity", f"{CLUSTER} 1 ours"))
        lines.append(line("etcd-refused", ""))
        lines.append(line("backup-timer", "active"))
        lines.append(line("backup-begun", ""))
    if node.name == plan.etcd[-1].name:
        lines.append(backed_up(2.5))
    return edited([*lines, "end"], edits)


def cluster(plan: Plan, wanted: Mapping[str, Expected], edits: Edits) -> str:
    """What a master tells of the cluster as planned, but for `edits`."""
    lines = [
        line(
            "node",
            node.name,
            "True",
            "",
            f"v{plan.versions.kubernetes}",
            f"containerd://{plan.versions.containerd}",
            wanted[node.name].applied,
            "",
            "",
        )
        for node in plan.nodes
        if node.in_kubernetes
    ]
    lines += [line("endpoint", node.address) for node in plan.masters]
    return edited([*lines, line("settings", 2), "end"], edits)


def edited(lines: list[str], edits: Edits) -> str:
    for start, new in edits.items():
        at = next((i for i, text in enumerate(lines) if f"{text}\t".startswith(f"{start}\t")), -1)
        if at < 0 and new is not None:
            lines.insert(0, new)
        elif at >= 0:
            lines[at : at + 1] = [] if new is None else [new]
        else:
            raise KeyError(start)
    return "\n".join(lines)


def look(
    plan: Plan,
    machines: Mapping[str, Edits | str] | None = None,
    of_cluster: Edits | str | None = None,
    *,
    not_applied: tuple[str, ...] = (),
) -> Look:
    """A look at a stack where all is as planned, but for these machines.

    A text in place of edits is why a machine cannot be reached, or why no master tells.
    """
    wanted = {
        node.name: expected.of(plan, node, files=FILES, ca=CA, cluster_id=CLUSTER_ID)
        for node in plan.nodes
    }
    found = {
        node.name: found_machine(plan, node, wanted[node.name], (machines or {}).get(node.name, {}))
        for node in plan.nodes
    }
    trouble = of_cluster if isinstance(of_cluster, str) else ""
    told = None
    if not isinstance(of_cluster, str):
        told = answers.cluster(cluster(plan, wanted, of_cluster or {}))
    findings = Findings(
        machines=found,
        expected=wanted,
        cluster=told,
        trouble=trouble,
        administrator=answers.certificate(certificate(GOOD_DAYS)),
    )
    report = differences.compare(plan, findings, now=NOW)
    return Look(
        stack="dev", plan=plan, findings=findings, report=report, not_applied=not_applied, now=NOW
    )


def found_machine(plan: Plan, node: Node, wanted: Expected, edits: Edits | str) -> Found:
    if isinstance(edits, str):
        return Found(machine=None, trouble=edits, is_reached=False)
    told = answers.machine(machine(plan, node, wanted, edits))
    skew = told.clock_s - 1000.5
    return Found(machine=told, trouble="", is_reached=True, skew_s=skew)


def not_made(seen: Look, name: str) -> Look:
    """The same look, where the stack has no machine of that name yet."""
    return _with(
        seen, name, Found(machine=None, trouble="is not made yet", is_reached=False, is_made=False)
    )


def absent(seen: Look, name: str) -> Look:
    """The same look, where that machine was not asked."""
    return _with(
        seen, name, Found(machine=None, trouble="is absent", is_reached=False, is_absent=True)
    )


def _with(seen: Look, name: str, gone: Found) -> Look:
    findings = replace(seen.findings, machines={**seen.findings.machines, name: gone})
    report = differences.compare(seen.plan, findings, now=NOW)
    return replace(seen, findings=findings, report=report)
