"""A snapshot of etcd before the control plane of a living cluster changes."""

from __future__ import annotations

from pulumi import Resource
from pulumi_command import remote

from components.ssh.commands import ANY_CHANGE, Identity, Machine, after, converge
from stacks.cluster.plan import Plan
from stacks.edits import snapshots
from stacks.edits.memory import Memory
from stacks.phases.acceptance import plan_digest


def snapshot_first(
    before: Memory | None,
    plan: Plan,
    machine: Machine,
    *,
    identity: Identity,
    waits_for: tuple[Resource, ...],
    parent: Resource,
) -> remote.Command:
    """Resource `<cluster>-snapshot`, on an etcd machine that stays, by members that are there now.

    While no change of the control plane is due, nothing about it changes: it is there so that a
    second up has nothing to do. Every change of a living cluster waits for it. `waits_for` holds
    the attempt by which the list of nodes is run again should this update break off.
    """
    due = snapshots.reasons(before, plan)
    values = {"REASON": ""}
    if due:
        # Another change is another snapshot; a retry of the same one is not.
        wanted = {"REASON": snapshots.REASON, "WANTED": plan_digest(plan)}
        values = wanted | snapshots.values(before, plan, machine.node)
    return converge(
        f"{plan.spec.cluster.name}-snapshot",
        machine,
        "snapshot",
        values,
        identity=identity,
        opts=after(*waits_for, parent=parent, ignore=() if due else ANY_CHANGE),
    )
