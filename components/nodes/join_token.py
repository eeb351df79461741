"""The bootstrap token by which workers join.

Made anew for an update that adds nodes, and deleted once they have joined: at most one is there.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Collection, Sequence

import pulumi
from pulumi import Input, Output, Resource
from pulumi_command import remote

from components.pki.authority import Pki
from components.ssh.commands import ANY_CHANGE, Identity, Machine, after, converge
from stacks.cluster import names
from stacks.cluster.plan import Plan
from stacks.render import join


def token(pki: Pki, pending: Collection[str]) -> Output[str]:
    """A bootstrap token, `[a-z0-9]{6}.[a-z0-9]{16}`.

    The same within an hour for the same pending nodes, so that preview and up agree.
    """
    purpose = f"join {int(time.time()) // 3600} {' '.join(sorted(pending))}"

    def text(key: bytes) -> str:
        code = hashlib.sha256(key).hexdigest()
        return f"{code[:6]}.{code[6:22]}"

    return pki.derived(purpose).apply(text)


def mint(
    name: str,
    plan: Plan,
    machine: Machine,
    secret: Output[str],
    *,
    pending: Collection[str],
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
    values: dict[str, Input[str]] = {
        "KUBEADM_CONFIG": secret.apply(
            lambda text: join.bootstrap_token(plan, machine.node, text, joining=len(pending))
        ),
        # Known to the cluster before they can join: an up that takes this back removes them.
        "JOINING": names.ranges(pending),
        "TOKEN_S": str(join.token_life_s(len(pending))),
    }
    return converge(
        name,
        machine,
        "mint",
        values,
        identity=identity,
        stamp=attempt,
        secret=True,
        opts=after(*waits_for, parent=parent, ignore=() if pending else ANY_CHANGE),
    )


def discovery(ca_cert: Output[str], secret: Output[str]) -> Output[str]:
    """The kubeconfig that a joining worker finds the cluster with."""
    return Output.all(ca=ca_cert, token=secret).apply(
        lambda known: join.discovery(known["ca"], known["token"])
    )
