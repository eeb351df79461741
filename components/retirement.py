"""Taking nodes out before anything else happens: dead ones, and those that are made anew."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from pulumi import Resource
from pulumi_command import remote

from components.node_list import members
from components.remote import Identity, Machine, after, converge
from stacks.plan import Node, Plan


def retire_first(
    plan: Plan,
    machine: Machine,
    going: Mapping[str, Node],
    *,
    endpoints: str,
    identity: Identity,
    scripts: Resource,
    attempt: Resource,
    parent: Resource,
) -> remote.Command:
    """Resource `<cluster>-retire`, on a master that stays, by etcd members that stay (`endpoints`).

    While nobody goes, nothing about it changes: it is there so that a second up has nothing to do.
    Every change of a living cluster waits for it, and it for `attempt`, by which the list of nodes
    is run again should this update break off.
    """
    values = {
        "GOING_MEMBERS": members(node for node in going.values() if node.is_etcd),
        "MEMBERS": members(plan.etcd),
        "ETCD_ENDPOINTS": endpoints,
        # The same name may go again one day.
        "INCARNATIONS": " ".join(
            f"{node.name}={node.generation}:{node.state}" for node in going.values()
        ),
    }
    return converge(
        f"{plan.spec.cluster.name}-retire",
        machine,
        "retire",
        values if going else {},
        identity=identity,
        opts=after(scripts, attempt, parent=parent, ignore=_unless(going)),
    )


def _unless(going: Collection[str]) -> tuple[str, ...]:
    return () if going else ("stdin", "create", "connection")
