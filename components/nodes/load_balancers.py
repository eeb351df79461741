"""Machines with role `loadbalancer`: HAProxy, and what they show to the cluster."""

from __future__ import annotations

from collections.abc import Callable, Collection

from pulumi import Resource

from components.nodes.prepared import Prepared
from components.pki import key_files
from components.pki.authority import Pki
from components.ssh.commands import Identity, Machine, after
from stacks.cluster.plan import Node, Plan


def make_ready(
    cluster: str,
    plan: Plan,
    pki: Pki,
    *,
    prepare: Callable[[Node, Resource | None], Prepared],
    machine: Callable[[Node], Machine],
    settled: Collection[str],
    identity: Identity,
    parent: Resource,
    turn: Resource | None,
) -> dict[str, Resource]:
    """Resource `<cluster>-<node>-keys` of each, by name; what comes before it is `prepare`'s.

    Those that exist, which are `settled`, change one after another once `turn` is done; new ones
    are made ready at once. `machine` is the one that the node phase may have rebooted.
    """
    ready: dict[str, Resource] = {}
    for node in plan.load_balancers:
        waits = node.name in settled
        prepared = prepare(node, turn if waits else None)
        ready[node.name] = key_files.place(
            f"{cluster}-{node.name}-keys",
            machine(node),
            key_files.of_load_balancer(pki, plan, node),
            generation=plan.spec.converge.generation,
            identity=identity,
            opts=after(prepared.ready, parent=parent),
            # Not only keys: after a reboot this is what proves that the machine is back.
            os_packages=plan.spec.os.packages or "",
        )
        if waits:
            turn = ready[node.name]
    return ready
