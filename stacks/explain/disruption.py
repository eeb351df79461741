"""What clients will notice of an edit, with the reason."""

from __future__ import annotations

from collections.abc import Iterator

from stacks.cluster.plan import Plan
from stacks.edits import membership
from stacks.edits.memory import Memory
from stacks.explain.actions import Action
from stacks.explain.changes import Changes


def downtime(before: Memory | None, plan: Plan, found: Changes) -> tuple[str, ...]:
    """What clients will notice; empty is what an edit of a highly available cluster should be."""
    if before is None:
        return ()
    out = []
    for role, what, restart in (
        ("master", "the API does not answer while its only API server", "kube-apiserver"),
        ("etcd", "the API can neither read nor write while etcd's only member", "etcd"),
    ):
        served = [name for name, machine in before.machines.items() if role in machine.roles]
        if len(served) != 1:
            continue
        actions = [a for node in found.of("changed") if node.name in served for a in node.actions]
        if any(_restarts(action, restart) for action in actions):
            out.append(f"{what} restarts ({served[0]})")
    return (*out, *_vip_away(before, plan))


def _vip_away(before: Memory, plan: Plan) -> Iterator[str]:
    """Nobody has the VIP for a time: it moves to other machines, or its only one is made anew."""
    then = _standing_by(before.plan) if before.plan else set()
    now, anew = _standing_by(plan), set(membership.rebuilt(before, plan))
    if not then or not now or (then & now) - anew:
        return
    if then <= anew:
        yield f"the VIP {plan.vip} while {', '.join(sorted(then))} is made anew"
    else:
        # Masters and load balancers stand by for each other; one pool does not for another.
        handed = before.plan and bool(before.plan.load_balancers) != bool(plan.load_balancers)
        how_long = "about a second" if handed else "some seconds"
        yield f"the VIP {plan.vip} for {how_long}, while it moves to {', '.join(sorted(now))}"


def _standing_by(plan: Plan) -> set[str]:
    """Who can have the VIP: a load balancer in maintenance cannot."""
    resting = {node.name for node in plan.load_balancers if node.state != "active"}
    return {node.name for node in plan.holders} - resting


def _restarts(action: Action, what: str) -> bool:
    return action.restarts == what
