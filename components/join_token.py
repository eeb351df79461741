"""The bootstrap token by which workers join.

Made anew for an update that adds nodes, dead two hours later.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Collection

from pulumi import Input, Output, Resource
from pulumi_command import remote

from components.pki import Pki
from components.remote import ANY_CHANGE, Identity, Machine, after, converge
from stacks.files import join
from stacks.plan import Plan


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
    parent: Resource,
    waits_for: Resource,
) -> remote.Command:
    """Make the token known to the cluster.

    While no node is pending, nothing about this resource changes.
    """
    values: dict[str, Input[str]] = {
        "KUBEADM_CONFIG": secret.apply(lambda text: join.bootstrap_token(plan, machine.node, text))
    }
    return converge(
        name,
        machine,
        "mint",
        values,
        identity=identity,
        secret=True,
        opts=after(waits_for, parent=parent, ignore=() if pending else ANY_CHANGE),
    )


def discovery(ca_cert: Output[str], secret: Output[str]) -> Output[str]:
    """The kubeconfig that a joining worker finds the cluster with."""
    return Output.all(ca=ca_cert, token=secret).apply(
        lambda known: join.discovery(known["ca"], known["token"])
    )
