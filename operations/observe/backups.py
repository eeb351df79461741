"""Backups of etcd as a probe found them: the last one, and what is wrong with them. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from operations.observe.facts import Backup, Sending
from operations.observe.hints import RAISE, Difference
from operations.observe.probe import Findings
from stacks.cluster.plan import Node, Plan

_HOUR_S = 3600
_CUT_OFF_S = _HOUR_S  # the unit ends one that takes longer
_MIB = 1024**2


def last(findings: Findings) -> tuple[str, Backup] | None:
    """Node and snapshot of the newest one on any machine that was reached."""
    known = [
        (name, found.machine.backup)
        for name, found in findings.machines.items()
        if found.machine is not None and found.machine.backup is not None
    ]
    return max(known, key=lambda one: one[1].time_s, default=None)


def sent(findings: Findings) -> Sending | None:
    """The newest one that the object store has, by what machines remember that were reached."""
    known = [
        found.machine.backup_sent
        for found in findings.machines.values()
        if found.machine is not None and found.machine.backup_sent is not None
    ]
    return max(known, key=lambda one: one.time_s, default=None)


def line(plan: Plan, findings: Findings, now: datetime) -> str:
    """One line of the screen."""
    every = plan.spec.etcd.backup.every_hours
    schedule = f"every {every} h" if every else "no timer by the config"
    newest = last(findings)
    if newest is None:
        return f"backups: NONE yet ({schedule})"
    name, one = newest
    size = f"{one.size / _MIB:.1f} MiB"
    what = f"revision {one.revision}, {size}, on {name}"
    return f"backups: the last one {_age(one.time_s, now)} ago ({what}), {schedule}" + _away(
        plan, findings, now
    )


def _away(plan: Plan, findings: Findings, now: datetime) -> str:
    if plan.spec.etcd.backup.object_store is None:
        return ""
    one = sent(findings)
    if one is None:
        return "; NONE in the object store"
    return f"; in the object store: {_age(one.time_s, now)} ago"


def _age(time_s: int, now: datetime) -> str:
    minutes = max(0, int(now.timestamp() - time_s) // 60)
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min"


def of_node(plan: Plan, node: Node, findings: Findings, now: datetime) -> Iterator[Difference]:
    """The timer of an etcd machine that was reached, and a backup that was interrupted there."""
    found = findings.machines[node.name].machine
    if found is None or not node.is_etcd:
        return
    if plan.spec.etcd.backup.every_hours and found.backup_timer != "active":
        text = f"the timer of etcd backups is {found.backup_timer or 'unknown'}"
        yield Difference(kind="backup", subject="kube-ha-backup.timer", text=text, do=RAISE)
    begun = found.backup_begun_s
    if begun is not None and now.timestamp() - begun > _CUT_OFF_S:
        text = "its last backup of etcd was never finished"
        do = "journalctl -u kube-ha-backup there tells why; make backup takes another one"
        yield Difference(kind="backup", subject="backup", text=text, do=do)

    unsent, there = found.backup_unsent, sent(findings)
    if plan.spec.etcd.backup.object_store is None or unsent is None:
        return
    if there is None or there.time_s < unsent.time_s:  # else another machine sent one since
        text = f"{unsent.name} did not get to the object store: {unsent.trouble}"
        do = "fix that, then make backup; it is on the machine all the while"
        yield Difference(kind="backup", subject="object store", text=text, do=do)


def of_cluster(plan: Plan, findings: Findings, now: datetime) -> Iterator[Difference]:
    """Backups that do not come any more. A cluster is given the time of two before its first."""
    every = plan.spec.etcd.backup.every_hours
    if not every:
        return
    late_s = (2 * every + 1) * _HOUR_S
    do = "journalctl -u kube-ha-backup on the etcd machines tells why; make backup takes one now"
    newest = last(findings)
    taken_s = newest[1].time_s if newest else None
    found = [("the last backup of etcd", "etcd was never backed up", taken_s)]
    if plan.spec.etcd.backup.object_store is not None:
        away, none = "the last one in the object store", "the object store was never sent a backup"
        there = sent(findings)
        found.append((away, none, there.time_s if there else None))
    for what, never, time_s in found:
        since = _running_since(findings) if time_s is None else [time_s]
        if not since or now.timestamp() - min(since) <= late_s:
            continue
        hours = int(now.timestamp() - min(since)) // _HOUR_S
        told = never if time_s is None else f"{what} is {hours} h old"
        text = f"{told}, one every {every} h is planned"
        yield Difference(kind="backup", subject="etcd", text=text, do=do)


def _running_since(findings: Findings) -> list[int]:
    units = [
        found.machine.units["etcd"].since_s
        for found in findings.machines.values()
        if found.machine is not None and "etcd" in found.machine.units
    ]
    return [since for since in units if since is not None]
