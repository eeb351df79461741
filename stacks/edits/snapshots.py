"""Whether an edit changes the control plane of a living cluster: etcd is saved before it. Pure."""

from __future__ import annotations

from stacks.cluster.plan import Node, Plan
from stacks.edits import membership, memory
from stacks.edits.memory import Memory
from stacks.phases import desired, etcd_member, object_store
from stacks.phases.gate import plan_digest

REASON = "change"  # is in the names of snapshots
# Runs phases again and changes nothing by itself; it fixes clusters too that have no etcd to save.
_AGAIN = ("GENERATION", "INCARNATION")
_PHASES = ("etcd-member", "master")


def reasons(before: Memory | None, plan: Plan) -> tuple[str, ...]:
    """What is about to change, in words; empty where nothing needs a snapshot before it."""
    if before is None or place(before, plan) is None:
        return ()
    if before.plan is None:
        return ("what is running is not remembered",)
    then = before.plan
    found = {
        "versions": then.versions != plan.versions,
        "control plane": then.spec.control_plane != plan.spec.control_plane,
        "PKI": then.spec.pki != plan.spec.pki,
        "members": _members(before.plan) != _members(plan),
        "masters": _masters(then) != _masters(plan),
        "lost or recreated nodes": any(
            node.name in before.machines for node in membership.taken_out_first(before, plan)
        ),
        "settings of masters": _values(then) != _values(plan),
        "what this program writes": any(
            name.startswith(_PHASES)
            for names in memory.other_values(before).values()
            for name in names
        ),
    }
    return tuple(name for name, differs in found.items() if differs)


def _members(plan: Plan) -> list[tuple[str, str, int]]:
    return [(node.name, node.address, node.generation) for node in plan.etcd]


def _masters(plan: Plan) -> set[tuple[str, int]]:
    return {(node.name, node.generation) for node in plan.masters}


def _values(plan: Plan) -> dict[str, dict[str, str]]:
    """By control plane node, what its phases are told, but for what only makes them run again."""
    nodes = {node.name: node for node in (*plan.etcd, *plan.masters)}
    return {name: _of(plan, node) for name, node in nodes.items()}


def _of(plan: Plan, node: Node) -> dict[str, str]:
    return {
        f"{phase} {name}": text
        for phase, values in desired.of_phases(plan, node).items()
        if phase in _PHASES
        for name, text in values.items()
        if name not in _AGAIN and not name.startswith("BACKUP_")
    }


def values(before: Memory | None, plan: Plan, node: Node) -> dict[str, str]:
    """What the phase is told on the machine of `place`: all as it was, for that is what is there.

    Where nothing is due, nothing but that.

    An object store that this edit changes or takes away is left alone: it may be the very thing
    that does not work, and for another one the machine has no key yet.
    """
    if not reasons(before, plan):
        return {"REASON": ""}
    then = (before and before.plan) or plan
    told = etcd_member.snapshot(then, node)
    if then.spec.etcd.backup.object_store != plan.spec.etcd.backup.object_store:
        told = {name: text for name, text in told.items() if name not in object_store.VALUES}
    # Another change is another snapshot; a retry of the same one is not.
    return {"REASON": REASON, "WANTED": plan_digest(plan), **told}


def place(before: Memory | None, plan: Plan) -> Node | None:
    """The etcd machine that takes it, as it was: the last one in turn of the remaining nodes.

    Others are changed before it, so what it holds is off every machine that is being changed. One
    that is back from absence has the first turn, and what it needs comes only with that: it takes
    the snapshot where no other can. None where every machine that has etcd leaves in this edit: no
    key and no client stays then.
    """
    then = (before and before.plan) or plan
    names = {node.name for node in membership.staying(before, plan) if not node.is_absent}
    back = membership.returning(before, plan)
    staying = (node for node in reversed(then.etcd) if node.name in names)
    there = sorted(staying, key=lambda node: node.name in back)
    answering = [node for node in there if node.name not in plan.unreached]
    return next(iter(answering or there), None)
