"""Taking nodes out before anything else happens: dead ones, and those that are made anew."""

from __future__ import annotations

from pulumi import Resource, Stash
from pulumi_command import remote

from components.ssh.commands import ANY_CHANGE, Identity, Machine, after, converge
from stacks.cluster.plan import Node, Plan
from stacks.edits import membership
from stacks.edits.memory import Memory
from stacks.phases.retire import of_retire


def survivor(before: Memory | None, plan: Plan) -> Node:
    """The master through which it is done: the first one that stays."""
    names = {node.name for node in membership.staying(before, plan)}
    return next(node for node in plan.masters if node.name in names)


def retire_first(
    before: Memory | None,
    plan: Plan,
    machine: Machine,
    *,
    identity: Identity,
    stamp: Stash,
    waits_for: tuple[Resource, ...],
    parent: Resource,
) -> remote.Command:
    """Resource `<cluster>-retire`, on the survivor, by etcd members that stay.

    While nobody goes, nothing about it changes: it is there so that a second up has nothing to do.
    Every change of a living cluster waits for it. `stamp` is new for every change of the plan: what
    this was told the last time is kept, and the very same node may be lost again one day.
    """
    known = {node.name: node for node in (*plan.nodes, *plan.away)}
    going = [known[name] for name in membership.going_first(before, plan)]
    names = {node.name for node in membership.staying(before, plan)}
    then = (before and before.plan) or plan
    return converge(
        f"{plan.spec.cluster.name}-retire",
        machine,
        "retire",
        of_retire(plan, machine.node, going=going, then=then, staying=names),
        identity=identity,
        stamp=stamp,
        opts=after(*waits_for, parent=parent, ignore=() if going else ANY_CHANGE),
    )
