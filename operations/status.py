"""`python -m operations.status STACK`: the cluster on one screen. Changes nothing.

Exit codes: 0 looked, whatever there was to see; 2 could not look.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from datetime import datetime

from operations.observe import backups, etcd_store, observation, overview
from operations.observe.observation import Look
from operations.observe.overview import Etcd, NodeState, Overview
from operations.observe.status_document import document
from stacks.cluster.plan import Plan
from stacks.edits.endings import SOON

_SCREEN = 30  # nodes that are listed one by one; of a bigger cluster only those that are not fine
_GIB = 1024**3
_MIB = 1024**2


def main(arguments: list[str]) -> int:
    """Print the screen, or the same as JSON."""
    return observation.tell(
        arguments,
        name="status",
        about=__doc__,
        document=document,
        lines=screen,
        code=code,
    )


def code(seen: Look) -> int:
    """The exit code: where no machine was reached, nothing was seen."""
    return 0 if any(found.is_reached for found in seen.findings.machines.values()) else 2


def screen(seen: Look) -> list[str]:
    """The lines of the screen."""
    view = overview.of(seen)
    return [
        _cluster(seen, view),
        "",
        *(table(view.nodes) if len(view.nodes) <= _SCREEN else _pools(view.nodes)),
        *_away(seen.plan),
        "",
        etcd(seen.plan, view.etcd),
        *(f"  ATTENTION: {words}" for words in view.etcd.strangers),
        _balancers(seen.plan, view),
        *_virtual_ip(seen.plan, view),
        _first_to_end(view, seen.now),
        backups.line(seen.plan, seen.findings, seen.now),
        _plan(seen),
    ]


def _cluster(seen: Look, view: Overview) -> str:
    plan = seen.plan
    said = f"cluster {plan.spec.cluster.name}: Kubernetes {plan.versions.kubernetes}"
    if seen.findings.cluster is None:
        return f"{said}, API at https://{plan.endpoint} DOES NOT ANSWER: {seen.findings.trouble}"
    ready = f"{len(view.ready_masters)} of {len(plan.masters)} masters"
    return f"{said}, API at https://{plan.endpoint}, ready on {ready}"


_HEADINGS = (
    "node",
    "roles",
    "address",
    "state",
    "kubelet",
    "containerd",
    "etcd",
    "units",
    "certs",
    "disk",
    "differs",
)


def table(nodes: Sequence[NodeState]) -> list[str]:
    """One line a node: units that run, days until the first certificate ends, free disk."""
    rows = [_HEADINGS, *(_row(node) for node in nodes)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADINGS))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def _row(one: NodeState) -> tuple[str, ...]:
    return (
        one.node.name,
        "+".join(one.node.roles),
        one.node.address,
        one.state,
        *(one.versions.get(name, "-") for name in ("kubelet", "containerd", "etcd")),
        f"{overview.active(one.units)} of {len(one.units)}" if one.units else "-",
        "-" if one.days_left is None else f"{one.days_left} d",
        "-" if one.disk_free is None else f"{one.disk_free} %",
        str(one.differences) if one.differences else "-",
    )


def _pools(nodes: Sequence[NodeState]) -> Iterator[str]:
    """A line a pool, then the nodes that are not fine, as many as fit on the screen."""
    pools = sorted({one.node.pool for one in nodes})
    width = max(len(pool) for pool in pools)
    for pool in pools:
        own = [one for one in nodes if one.node.pool == pool]
        fine = sum(1 for one in own if one.is_fine)
        yield f"pool {pool.ljust(width)}  {len(own):5} nodes, {fine:5} fine"
    bad = [one for one in nodes if not one.is_fine]
    if bad:
        yield ""
        yield from table(bad[:_SCREEN])
    if len(bad) > _SCREEN:
        yield f"and {len(bad) - _SCREEN} more that are not fine"


def _away(plan: Plan) -> Iterator[str]:
    """Machines that are known, and no part of the cluster."""
    if plan.away:
        words = [f"{node.name} {node.state}" for node in plan.away[:_SCREEN]]
        more = f" and {len(plan.away) - _SCREEN} more" if len(plan.away) > _SCREEN else ""
        yield f"away by the config: {', '.join(words)}{more}"


def etcd(plan: Plan, found: Etcd) -> str:
    """Members, leader, size, alarms, and what it can still lose."""
    if found.members is None:
        answering = f"{len(found.status)} of {len(plan.etcd)} answer"
        return f"etcd: NO QUORUM: no member tells of one ({answering})"
    voters = [member for member in found.members if not member.is_learner]
    learners = len(found.members) - len(voters)
    parts = [f"{len(voters)} voting members" + (f" and {learners} learning" if learners else "")]
    parts.append(f"leader {found.leader or 'UNKNOWN'}")
    parts += _database(found)
    alarms = "; ".join(map(str, found.alarms))
    parts.append(f"ALARMS: {alarms} (make drift tells what to do)" if alarms else "no alarms")
    lost = max(0, found.tolerance)
    parts.append(f"survives the loss of {lost} member{'' if lost == 1 else 's'}")
    return f"etcd: {', '.join(parts)}"


def _database(found: Etcd) -> Iterator[str]:
    """Size of the biggest database beside the quota, and how much of it is free inside."""
    biggest = max(found.status.values(), key=lambda status: status.size, default=None)
    if biggest is None:
        return
    free = etcd_store.free_percent(biggest)
    of_quota = f" of {biggest.quota / _GIB:g} GiB" if biggest.quota else ""
    inside = f" ({free} % of it free inside)" if free else ""
    yield f"{biggest.size / _MIB:.1f} MiB{inside}{of_quota}"


def _balancers(plan: Plan, view: Overview) -> str:
    nodes = sum(1 for node in plan.nodes if node.in_kubernetes or node.is_load_balancer)
    asked = f"load balancers: {view.balancers} of {nodes} nodes"
    if not view.down:
        return f"{asked} find every master up" if view.balancers else f"{asked} tell their state"
    words = [f"{master} is down for {_few(names)}" for master, names in view.down.items()]
    return f"{asked} tell: {'; '.join(words)}"


def _virtual_ip(plan: Plan, view: Overview) -> Iterator[str]:
    if plan.holders:
        many = " AT ONCE" if len(view.holders) > 1 else ""
        yield f"virtual IP: {plan.vip} is on {', '.join(view.holders) or 'NO MACHINE'}{many}"


def _few(names: Sequence[str]) -> str:
    if len(names) <= 3:
        return ", ".join(names)
    return f"{', '.join(names[:2])} and {len(names) - 2} more"


def _first_to_end(view: Overview, now: datetime) -> str:
    first = view.first_to_end
    if first is None:
        return "certificates: none seen"
    ends, where = first.certificate.ends, f"{first.path} of {first.where}"
    if ends <= now:
        return f"certificates: {where} HAS EXPIRED on {ends:%Y-%m-%d}"
    soon = " SOON" if ends - now < SOON else ""
    return (
        f"certificates: the first ends{soon} in {(ends - now).days} days ({ends:%Y-%m-%d}): {where}"
    )


def _plan(seen: Look) -> str:
    edits, report = seen.not_applied, seen.report
    if edits:
        text = f"{edits[0]}" + (f" and {len(edits) - 1} more" if len(edits) > 1 else "")
        return f"plan: not applied yet: {text}; pulumi preview --stack {seen.stack} shows it"
    if not report.count:
        return "plan: everything is as planned"
    bad = sum(1 for found in report.nodes.values() if found)
    where = f"{bad} of {len(report.nodes)} machines" + (
        ", and the cluster" if report.cluster else ""
    )
    many = "1 difference" if report.count == 1 else f"{report.count} differences"
    return f"plan: {many} on {where}; details: make drift STACK={seen.stack}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
