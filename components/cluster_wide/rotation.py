"""The end of a rotation's step: what the cluster keeps of its CAs, and Secrets under their key."""

from __future__ import annotations

from pulumi import Resource

from components.cluster_wide import node_list
from components.ssh.commands import Identity, Machine, after, attempted
from stacks.cluster import rotation
from stacks.cluster.plan import Plan


def settle_keys(
    plan: Plan,
    machine: Machine,
    *,
    identity: Identity,
    parent: Resource,
    first: Resource,
    last: Resource,
) -> Resource:
    """Resource `<cluster>-rotation`, once the `last` master has made the step.

    A cluster whose keys are those of its first day has none, and goes on after the `first` one that
    serves.
    """
    keys = rotation.words(plan)
    if not keys:
        return first
    name = f"{plan.spec.cluster.name}-rotation"
    encrypted = plan.spec.control_plane.encrypt_secrets
    values = {
        "KEYS": keys,
        "ETCD_ENDPOINTS": node_list.etcd_endpoints(plan, plan.etcd),
        "ENCRYPTS": rotation.encrypts(plan) if encrypted else "",
        "GENERATION": str(plan.spec.converge.generation),
    }
    return attempted(
        name,
        machine,
        "rotation",
        values,
        identity=identity,
        opts=after(last, parent=parent),
    )
