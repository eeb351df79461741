"""For how many nodes the settings of a cluster are made, and what another size restarts."""

from __future__ import annotations

from stacks.cluster import sizing
from stacks.cluster.plan import Plan
from stacks.config.sizing import SMALLEST
from stacks.edits.memory import Memory
from stacks.explain.changes import Changes
from stacks.explain.restarts import Restarts


def line(before: Memory | None, plan: Plan, found: Changes) -> str:
    """`settings for up to 300 nodes in place of 100; 265 are listed; ...`.

    Empty where nodes fit and nothing is decided: the size stays, or is the smallest of a new one.
    """
    size, was = sizing.of(plan), sizing.of(before.plan) if before else None
    count = sum(node.in_kubernetes for node in plan.nodes)
    if count <= size and (was or SMALLEST) == size:
        return ""
    words = [f"settings for up to {size} nodes", f"{count} are listed"]
    if before is not None and was != size:
        words[0] += f" in place of {was}"
        words += _restarts(Restarts(before, plan, found))
    return "; ".join(words)


def _restarts(known: Restarts) -> list[str]:
    """What of the control plane restarts in this edit."""
    counted = (
        (len(known.etcd), "etcd member"),
        (len(known.api), "API server"),
    )
    named = [f"{count} {what}{'s' * (count > 1)}" for count, what in counted if count]
    return [f"restarts, one machine at a time: {', '.join(named)}"] if named else []
