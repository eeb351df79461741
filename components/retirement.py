"""Taking nodes out before anything else happens: dead ones, and those that are made anew."""

from __future__ import annotations

from pulumi import Resource
from pulumi_command import remote

from components.node_list import etcd_endpoints, members
from components.remote import ANY_CHANGE, Identity, Machine, after, converge
from stacks import membership
from stacks.memory import Memory
from stacks.plan import Node, Plan


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
    waits_for: tuple[Resource, ...],
    parent: Resource,
) -> remote.Command:
    """Resource `<cluster>-retire`, on the survivor, by etcd members that stay.

    While nobody goes, nothing about it changes: it is there so that a second up has nothing to do.
    Every change of a living cluster waits for it.
    """
    known = {node.name: node for node in (*plan.nodes, *plan.away)}
    # Load balancers too: they are no Nodes, and give up the virtual IP.
    going = [known[name] for name in membership.going_first(before, plan)]
    names = {node.name for node in membership.staying(before, plan)}
    # etcd may be about to move: it is asked where it was.
    then = (before and before.plan) or plan
    values = {
        # The same name may go again one day.
        "INCARNATIONS": " ".join(f"{node.name}={node.generation}:{node.state}" for node in going),
        "GOING_MEMBERS": members(node for node in going if node.is_etcd),
        "MEMBERS": members(plan.etcd),
        "ETCD_ENDPOINTS": etcd_endpoints(then, [n for n in then.etcd if n.name in names]),
    }
    return converge(
        f"{plan.spec.cluster.name}-retire",
        machine,
        "retire",
        values if going else {},
        identity=identity,
        opts=after(*waits_for, parent=parent, ignore=() if going else ANY_CHANGE),
    )
