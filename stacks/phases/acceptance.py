"""What the last phases of every update, the list of nodes and the gate, are run for."""

from __future__ import annotations

from stacks.cluster import digests
from stacks.cluster.plan import Plan


def plan_digest(plan: Plan) -> str:
    """Hash of everything wanted: every change has to pass the gate before it is remembered."""
    # Of pools only what became nodes: hosts listed in another order are no change. How a change
    # reaches the nodes is nothing that they become.
    apart = {"pools", "nodes", "allow", "rollout"}
    settings = plan.spec.model_dump_json(by_alias=True, exclude=apart)
    addons = [repr(plan.addons)] if plan.addons else []
    return digests.digest(settings, repr(plan.versions), repr(plan.nodes), *addons)
