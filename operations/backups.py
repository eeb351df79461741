"""Backups of etcd as a probe found them: the last one, and what is wrong with them. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from operations.facts import Backup
from operations.hints import RAISE, Difference
from operations.probe import Findings
from stacks.plan import Node, Plan

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
    return f"backups: the last one {_age(one, now)} ago ({what}), {schedule}"


def _age(one: Backup, now: datetime) -> str:
    minutes = max(0, int(now.timestamp() - one.time_s) // 60)
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min"


def of_node(plan: Plan, node: Node, findings: Findings, now: datetime) -> Iterator[Difference]:
    """The timer of an etcd machine that was reached, and a backup that broke off there."""
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


def of_cluster(plan: Plan, findings: Findings, now: datetime) -> Iterator[Difference]:
    """Backups that do not come any more. A cluster is given the time of two before its first."""
    every = plan.spec.etcd.backup.every_hours
    if not every:
        return
    late_s = (2 * every + 1) * _HOUR_S
    newest = last(findings)
    since = [newest[1].time_s] if newest else _running_since(findings)
    if not since or now.timestamp() - min(since) <= late_s:
        return
    hours = int(now.timestamp() - min(since)) // _HOUR_S
    told = f"the last backup of etcd is {hours} h old" if newest else "etcd was never backed up"
    text = f"{told}, one every {every} h is planned"
    do = "journalctl -u kube-ha-backup on the etcd machines tells why; make backup takes one now"
    yield Difference(kind="backup", subject="etcd", text=text, do=do)


def _running_since(findings: Findings) -> list[int]:
    units = [
        found.machine.units["etcd"].since_s
        for found in findings.machines.values()
        if found.machine is not None and "etcd" in found.machine.units
    ]
    return [since for since in units if since is not None]
