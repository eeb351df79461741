"""The firewall of machines in an edit: nobody comes while it is taken away."""

from __future__ import annotations

from collections.abc import Iterator

from stacks.checks.firewall import PATH
from stacks.checks.refusals import Refusal
from stacks.cluster.names import spoken
from stacks.cluster.plan import Plan
from stacks.edits.memory import Memory
from stacks.phases import firewall


def refusals(before: Memory, plan: Plan) -> Iterator[Refusal]:
    """Machines that lose it do so in their turns, and until then let in those that were there."""
    if before.plan is None or firewall.is_wanted(plan) or not firewall.is_wanted(before.plan):
        return
    new = sorted(node.name for node in plan.nodes if node.name not in before.machines)
    if new:
        text = (
            f"is taken out while {spoken(new)} would join, whom the others do not let in yet; take "
            "it out in an update of its own"
        )
        yield Refusal("firewall", "+".join(new), PATH, text)
