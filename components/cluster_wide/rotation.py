"""The end of a rotation's step: what the cluster keeps of its CAs, and Secrets under their key."""

from __future__ import annotations

from pulumi import Resource

from components.ssh.commands import Identity, Machine, after, attempted
from stacks.cluster.plan import Plan
from stacks.phases import rotation


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
    values = rotation.of_rotation(plan)
    if not values:
        return first
    name = f"{plan.spec.cluster.name}-rotation"
    return attempted(
        name,
        machine,
        "rotation",
        values,
        identity=identity,
        opts=after(last, parent=parent),
    )
