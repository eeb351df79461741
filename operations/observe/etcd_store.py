"""The databases of etcd as their members tell: how full they are, and their alarms. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from operations.observe import etcd_clusters, membership
from operations.observe.facts import MemberStatus
from operations.observe.hints import Difference
from operations.observe.probe import Findings
from stacks.cluster.plan import Node, Plan

_MIB = 1024**2
_GIB = 1024**3
_FULL = 70  # percent of the quota from which on it is told
_FREE = 50  # percent of a database's file, above which it is worth to be told
_SMALL = 256 * _MIB  # a file of this size may be as empty as it likes
# As etcd prints an AlarmMember.
_ALARM = re.compile(r"(?:memberID:(\d{1,20}) +)?alarm:([A-Z_]{1,30}) *")


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    name: str  # NOSPACE, CORRUPT
    member: str  # node name; of a member that no machine is known for its id

    def __str__(self) -> str:
        return f"{self.name} of {self.member}"

    @property
    def do(self) -> str:
        """The way out."""
        if self.name == "NOSPACE":
            return (
                "nothing but deletes is written: make defrag gives back what is free inside and "
                "ends the alarm; where that is not enough, raise etcd.quotaBackendGib and run "
                "pulumi up, which ends it too"
            )
        if self.name == "CORRUPT":
            return (
                f"its data is not that of the others: raise nodes.{self.member}.generation and run "
                "pulumi up, which recreates that member"
            )
        return f"etcdctl alarm list on {self.member}"


def statuses(plan: Plan, findings: Findings) -> dict[str, MemberStatus]:
    """Of the members of our cluster that answer, by node name."""
    machines = {node.name: findings.machines[node.name].machine for node in plan.etcd}
    ours = etcd_clusters.ours(findings)
    return {
        name: found.etcd
        for name, found in machines.items()
        if found and found.etcd and not etcd_clusters.is_foreign(found, ours)
    }


def alarms(plan: Plan, findings: Findings) -> tuple[Alarm, ...]:
    """Each alarm once: every member tells those of all."""
    told = statuses(plan, findings)
    names = {status.id: name for name, status in told.items()}
    names |= {one.id: one.name for one in membership.members(findings) or () if one.name}
    found = set()
    for name, status in told.items():
        for match in filter(None, map(_ALARM.fullmatch, status.errors)):
            whose = names.get(int(match[1]), f"{int(match[1]):x}") if match[1] else name
            found.add(Alarm(name=match[2], member=whose))
    return tuple(sorted(found, key=str))


def of_member(plan: Plan, node: Node, findings: Findings) -> Iterator[Difference]:
    """Alarms of the member on a machine, what else it says is wrong, and how full it is."""
    status = statuses(plan, findings).get(node.name)
    for alarm in alarms(plan, findings):
        if alarm.member == node.name:
            yield _alarm(alarm)
    if status is None:
        return
    for error in status.errors:
        # Without a leader there is no quorum, which is told.
        if not _ALARM.fullmatch(error) and "no leader" not in error:
            do = "journalctl -u etcd there tells why"
            yield Difference(kind="etcd", subject="error", text=f"its etcd says: {error}", do=do)
    yield from _space(status)


def of_cluster(plan: Plan, findings: Findings) -> Iterator[Difference]:
    """Alarms of members that are on no machine of the plan."""
    names = {node.name for node in plan.etcd}
    yield from (_alarm(one) for one in alarms(plan, findings) if one.member not in names)


def _alarm(alarm: Alarm) -> Difference:
    return Difference(kind="etcd", subject="alarm", text=f"etcd alarm {alarm}", do=alarm.do)


def _space(status: MemberStatus) -> Iterator[Difference]:
    size, free = status.size, free_percent(status)
    if status.quota and 100 * size >= _FULL * status.quota:
        text = (
            f"its database is {size / _MIB:.0f} MiB, {100 * size // status.quota} % of its quota "
            f"of {status.quota / _GIB:g} GiB"
        )
        inside = "" if free is None else f" ({free} % of it are free inside)"
        do = (
            f"make defrag{inside}; if it grows on, raise etcd.quotaBackendGib and run pulumi up: "
            "a full etcd takes no writes"
        )
        yield Difference(kind="etcd", subject="space", text=text, do=do)
    elif free is not None and free > _FREE and size > _SMALL:
        text = f"{free} % of its database of {size / _MIB:.0f} MiB are free inside"
        do = "make defrag gives that back to the disk"
        yield Difference(kind="etcd", subject="space", text=text, do=do)


def free_percent(status: MemberStatus) -> int | None:
    """How much of the file holds nothing; None: not told."""
    if status.in_use is None or not status.size:
        return None
    return 100 * (status.size - status.in_use) // status.size
