"""The state of a cluster in few facts, of what a probe found. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from operations.observe import etcd_clusters, etcd_store, membership
from operations.observe.etcd_store import Alarm
from operations.observe.facts import Certificate, Member, MemberStatus
from operations.observe.observation import Look
from operations.observe.probe import Findings
from stacks.cluster.plan import Node, Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeState:
    node: Node
    state: str  # Ready; NotReady, cordoned, unreachable ... : see state()
    versions: Mapping[str, str]  # of what runs, by kubelet, containerd, etcd; unknown ones left out
    units: Mapping[str, str]  # systemd's word by unit
    days_left: int | None  # of the certificate that ends first
    disk_free: int | None  # percent of /var/lib, or of etcd's own where that is less
    differences: int

    @property
    def is_fine(self) -> bool:
        return self.state == "Ready" and not self.differences


@dataclass(frozen=True, slots=True, kw_only=True)
class Etcd:
    members: tuple[Member, ...] | None  # None: none tells of a quorum
    status: Mapping[str, MemberStatus]  # by node name, of those that answer
    leader: str  # node name; empty: none known
    tolerance: int  # members that may be lost from here on; negative: quorum is lost
    strangers: tuple[str, ...]  # etcd that is another cluster, or may not serve, in words
    alarms: tuple[Alarm, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    where: str  # node name, or "the stack"
    path: str
    certificate: Certificate


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    nodes: tuple[NodeState, ...]
    ready_masters: tuple[str, ...]
    etcd: Etcd
    balancers: int  # that told their view
    down: Mapping[str, tuple[str, ...]]  # master -> nodes whose HAProxy does not find it up
    holders: tuple[str, ...]  # of the virtual IP, of those that told
    first_to_end: Ending | None


def of(seen: Look) -> Overview:
    """All of it."""
    plan, findings, report, now = seen.plan, seen.findings, seen.report, seen.now
    nodes = tuple(
        _node(node, findings, differences=len(report.nodes[node.name]), now=now)
        for node in plan.nodes
    )
    told = {
        name: found.machine.balancer
        for name, found in findings.machines.items()
        if found.machine is not None and found.machine.balancer
    }
    down = {
        node.name: tuple(
            name for name, view in told.items() if not view.get(node.name, "").startswith("UP")
        )
        for node in plan.masters
    }
    return Overview(
        nodes=nodes,
        ready_masters=tuple(n.name for n in plan.masters if membership.serves(n.name, findings)),
        etcd=_etcd(plan, findings),
        balancers=len(told),
        down={name: nodes for name, nodes in down.items() if nodes},
        holders=membership.holders(plan, findings),
        first_to_end=_first_to_end(findings),
    )


def _node(node: Node, findings: Findings, *, differences: int, now: datetime) -> NodeState:
    found = findings.machines[node.name].machine
    known = findings.cluster.nodes.get(node.name) if findings.cluster else None
    ends = [c.ends for c in found.certificates.values() if c] if found else []
    versions = {}
    if known:
        versions = {"kubelet": known.kubelet.lstrip("v")}
        versions["containerd"] = known.runtime.rpartition("/")[2].lstrip("v")
    if found and found.etcd:
        versions["etcd"] = found.etcd.version
    units = {name: unit.active for name, unit in found.units.items()} if found else {}
    return NodeState(
        node=node,
        state=state(node, findings),
        versions={name: version for name, version in versions.items() if version},
        units=units,
        days_left=(min(ends) - now).days if ends else None,
        disk_free=min(disk.free_percent for disk in found.disks.values())
        if found and found.disks
        else None,
        differences=differences,
    )


def state(node: Node, findings: Findings) -> str:
    """Not made, absent, unreachable, of another cluster, else what Kubernetes or etcd say."""
    found, wanted = findings.machines[node.name], findings.expected[node.name]
    if not found.is_made:
        return "not made"
    if node.in_kubernetes:
        inner = _of_kubernetes(node, findings)
    else:
        inner = _of_balancer(node, findings) if node.is_load_balancer else _of_etcd(node, findings)
    if found.is_absent:
        return f"absent ({inner})" if inner else "absent"
    if not found.is_reached:
        return f"unreachable ({inner})" if inner else "unreachable"
    if found.machine is None:
        return "unreadable"
    if not wanted.owns(found.machine.owner):
        return "of another cluster" if found.machine.owner else "not set up"
    return inner or "unknown"


def _of_kubernetes(node: Node, findings: Findings) -> str:
    if findings.cluster is None:
        return ""
    known = findings.cluster.nodes.get(node.name)
    if known is None:
        return "no Node"
    failed = membership.failure(known)
    if failed:
        return f"failed: {failed}"
    return ("Ready" if known.is_ready else "NotReady") + (", cordoned" if known.is_cordoned else "")


def _of_etcd(node: Node, findings: Findings) -> str:
    found = findings.machines[node.name].machine
    if found is None:
        return ""
    return "Ready" if found.etcd is not None and found.etcd.leader else "NotReady"


def _of_balancer(node: Node, findings: Findings) -> str:
    """Ready: its HAProxy runs, and keepalived too where it is to."""
    found = findings.machines[node.name].machine
    if found is None:
        return ""
    runs = all(unit.active == "active" for unit in found.units.values())
    rests = ", in maintenance" if node.state == "maintenance" else ""
    return ("Ready" if runs and found.units else "NotReady") + rests


def _etcd(plan: Plan, findings: Findings) -> Etcd:
    members = membership.members(findings)
    status = etcd_store.statuses(plan, findings)
    voters = [member for member in members or () if not member.is_learner]
    count = len(voters) if members is not None else len(plan.etcd)
    ids = {member.id for member in voters}
    healthy = sum(1 for one in status.values() if one.leader and (members is None or one.id in ids))
    leaders = {one.leader for one in status.values() if one.leader}
    return Etcd(
        members=members,
        status=status,
        leader=_name_of(leaders, members or (), status),
        alarms=etcd_store.alarms(plan, findings),
        tolerance=healthy - (count // 2 + 1),
        strangers=etcd_clusters.words(findings),
    )


def _name_of(
    leaders: set[int], members: Sequence[Member], status: Mapping[str, MemberStatus]
) -> str:
    names = {member.id: member.name for member in members}
    names |= {one.id: name for name, one in status.items()}
    return " or ".join(sorted(names.get(leader, f"{leader:x}") for leader in leaders))


def _first_to_end(findings: Findings) -> Ending | None:
    known = [
        Ending(where=name, path=path, certificate=certificate)
        for name, found in findings.machines.items()
        if found.machine is not None
        for path, certificate in found.machine.certificates.items()
        if certificate is not None
    ]
    admin = findings.administrator
    if admin:
        known.append(Ending(where="the stack", path="kubeconfig", certificate=admin))
    return min(known, key=lambda one: one.certificate.ends, default=None)


def active(units: Mapping[str, str]) -> int:
    """How many of the units run."""
    return sum(1 for word in units.values() if word == "active")
