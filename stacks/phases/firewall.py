"""What the phases of the firewall make of a machine: their values, none of them secret."""

from __future__ import annotations

from stacks.cluster.plan import Node, Plan
from stacks.render import firewall, value


def is_wanted(plan: Plan) -> bool:
    """Whether machines filter what comes to them."""
    return plan.spec.machines.firewall is not None


def unused(plan: Plan) -> tuple[str, ...]:
    """Its phases where none is wanted: a stack without it remembers nothing of them."""
    return () if is_wanted(plan) else ("firewall-open", "firewall")


def of_opening(plan: Plan, node: Node) -> dict[str, str]:
    """Values of the firewall-open phase."""
    return {
        "FIREWALL_NFT": value.of(firewall.rules(plan, node)),
        "GENERATION": str(plan.spec.converge.generation),
    }


def of_firewall(plan: Plan, node: Node) -> dict[str, str]:
    """Values of the firewall phase."""
    return {**of_opening(plan, node), "FIREWALL_UNIT": value.of(firewall.unit())}
