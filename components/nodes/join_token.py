"""The bootstrap token by which workers join.

Made anew for an update that adds nodes, and deleted once they have joined: at most one is there.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial

import pulumi
from pulumi import Output, Resource
from pulumi_command import remote

from components.pki.authority import Pki
from components.ssh.commands import ANY_CHANGE, Identity, Machine, after, converge
from stacks.cluster.plan import Node, Plan
from stacks.phases import join


def token(pki: Pki, pending: Sequence[Node]) -> Output[str]:
    """The token of this hour for these nodes."""
    return pki.derived(join.purpose(pending, time.time())).apply(join.token)


def mint(
    name: str,
    plan: Plan,
    machine: Machine,
    secret: Output[str],
    *,
    pending: Sequence[Node],
    identity: Identity,
    attempt: pulumi.Stash,
    parent: Resource,
    waits_for: Sequence[Resource],
) -> remote.Command:
    """Make the token known to the cluster.

    While no node is pending, nothing about this resource changes. `attempt` is new with every
    change of the plan: a worker that left and is put back within the hour has the same token, which
    was deleted meanwhile.
    """
    return converge(
        name,
        machine,
        "mint",
        secret.apply(partial(join.of_mint, plan, machine.node, pending=pending)),
        identity=identity,
        stamp=attempt,
        secret=True,
        opts=after(*waits_for, parent=parent, ignore=() if pending else ANY_CHANGE),
    )
