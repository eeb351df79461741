"""Which etcd is the cluster's, by what the machines tell: one may be another, alone. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime

from operations.observe.facts import Machine
from operations.observe.hints import RAISE, Difference
from operations.observe.probe import Findings
from stacks.cluster.plan import Node


def ours(findings: Findings) -> int:
    """ID of the etcd cluster that is ours; 0: none answers, or it cannot be told.

    As etcd-identity.sh: that of the highest epoch, then the only one with this cluster's mark, then
    that of most machines.
    """
    told = [found.machine for found in findings.machines.values() if found.machine is not None]
    known = [one for one in told if one.etcd is not None and one.etcd.cluster]
    known = [one for one in known if one.etcd_mark != "other"]
    top = max((one.etcd_epoch for one in known), default=0)
    newest = [one for one in known if one.etcd_epoch == top]
    marked = {_cluster(one) for one in newest if one.etcd_mark == "ours"}
    if len(marked) == 1:
        return marked.pop()
    most = Counter(_cluster(one) for one in newest).most_common(2)
    if not most or (len(most) == 2 and most[0][1] == most[1][1]):
        return 0
    return most[0][0]


def _cluster(told: Machine) -> int:
    return told.etcd.cluster if told.etcd is not None else 0


def is_foreign(told: Machine | None, cluster: int) -> bool:
    """Whether the etcd of a machine answers, as a member of another cluster."""
    return bool(cluster) and told is not None and _cluster(told) not in (0, cluster)


def of_machine(node: Node, findings: Findings) -> Iterator[Difference]:
    """What is wrong with whose data the etcd of a machine has."""
    found = findings.machines[node.name].machine
    if found is None or not node.is_etcd:
        return
    if is_foreign(found, ours(findings)):
        text = f"its etcd is another cluster{_emptiness(found)}{_since(found)}"
        do = f"{RAISE}: its data is set aside, and it joins the others again"
        yield Difference(kind="etcd", subject="cluster", text=text, do=do)
    if found.etcd_refused is not None:
        said = found.etcd_refused
        text = f"its etcd may not serve since {_clock(said.time_s)}: {said.words}"
        do = "if a disk is missing, bring it back: etcd starts by itself; else " + RAISE
        yield Difference(kind="etcd", subject="refused", text=text, do=do)


def words(findings: Findings) -> tuple[str, ...]:
    """`etcd of master-2 is another cluster ...`, for the one screen."""
    out = []
    for name, found in findings.machines.items():
        told = found.machine
        if told is None:
            continue
        if is_foreign(told, ours(findings)):
            out.append(f"etcd of {name} is another cluster{_emptiness(told)}{_since(told)}")
        elif told.etcd_refused is not None:
            said = told.etcd_refused
            out.append(f"etcd of {name} may not serve since {_clock(said.time_s)}: {said.words}")
    return tuple(out)


def _emptiness(told: Machine) -> str:
    if told.etcd_mark == "none":
        return ", which began empty"
    return f", of epoch {told.etcd_epoch}" if told.etcd_epoch > 1 else ""


def _since(told: Machine) -> str:
    unit = told.units.get("etcd")
    return f", since {_clock(unit.since_s)}" if unit is not None and unit.since_s else ""


def _clock(time_s: int) -> str:
    return datetime.fromtimestamp(time_s, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
