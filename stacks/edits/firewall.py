"""The firewall of machines in an edit: who comes or goes is let in by all others, before and after.

Machines change their rules in their turns, so both sets of networks count while an update runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stacks.checks.firewall import PATH
from stacks.checks.refusals import Refusal
from stacks.cluster.names import spoken
from stacks.cluster.plan import Node, Plan
from stacks.config.addresses import holds
from stacks.config.firewall import FirewallSpec
from stacks.edits.memory import Memory


def refusals(before: Memory, plan: Plan) -> Iterator[Refusal]:
    """A machine that comes by a network that is not let in yet, or goes by one that is no more."""
    then = before.plan
    if then is None:
        return
    dead = {node.name for node in plan.away if node.is_given_up}
    going = (node for node in then.nodes if node.name not in dead)
    if came := _outside(then.spec.machines.firewall, plan.nodes):
        text = (
            f"of before has no network with the address of {spoken(came)}: machines that have it "
            "still would keep it out; change the networks in an update of their own, first"
        )
        yield Refusal("firewall", "+".join(came), f"{PATH}.networks", text)
    if left := _outside(plan.spec.machines.firewall, going):
        text = (
            f"has no network with the address of {spoken(left)}: machines would keep it out before "
            "it has left; change the networks in an update of their own, after this one"
        )
        yield Refusal("firewall", "+".join(left), f"{PATH}.networks", text)


def _outside(said: FirewallSpec | None, nodes: Iterable[Node]) -> list[str]:
    if said is None:
        return []
    return sorted(node.name for node in nodes if not holds(said.networks, node.address))
