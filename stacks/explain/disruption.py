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
    if before.plan is None:
        return (*out, *_vip_away(before, plan))
    lost = (*_quorum(before, found), *_vip_away(before, plan), *_ends(before.plan, plan))
    return (*out, *lost)


def _quorum(before: Memory, found: Changes) -> Iterator[str]:
    """Two members: while one restarts, the other has no quorum, and nobody else answers."""
    members = [name for name, machine in before.machines.items() if "etcd" in machine.roles]
    restarts = [
        node.name
        for node in found.of("changed")
        if node.name in members and any(_restarts(action, "etcd") for action in node.actions)
    ]
    if len(members) == 2 and restarts:
        yield (
            f"the API can neither read nor write while one of etcd's two members restarts "
            f"({', '.join(restarts)}): the other has no quorum"
        )


def _ends(then: Plan, plan: Plan) -> Iterator[str]:
    """Addresses and names by which clients outside have reached the API, and do no longer."""
    if then.vip and not plan.vip:
        yield f"the VIP {then.vip}: it is nobody's from now on, who uses it loses the API"
    elif then.vip != plan.vip and then.vip:
        yield f"the VIP {then.vip}: it becomes {plan.vip}, who knows the old one loses the API"
    if then.endpoint not in (plan.endpoint, then.vip):
        yield (
            f"the API at {then.endpoint}: the endpoint becomes {plan.endpoint}, so clients with "
            "the old one need a new kubeconfig"
        )
    if then.balancer not in ("none", plan.balancer):
        yield f"the {then.balancer} load balancer of the API: it is deleted, with its address"
    if then.spec.network.backend != plan.spec.network.backend:
        yield "pods of different nodes do not reach each other while flannel changes its backend"
    workers = {(node.name, node.generation) for node in then.workers}
    if workers and not workers & {(node.name, node.generation) for node in plan.workers}:
        yield "all workload: no worker of before stays"


def _vip_away(before: Memory, plan: Plan) -> Iterator[str]:
    """Nobody has the VIP for a time: it moves to other machines, or its only one is made anew."""
    then = _standing_by(before.plan) if before.plan else set()
    now, anew = _standing_by(plan), set(membership.rebuilt(before, plan))
    gone = before.plan is not None and before.plan.vip != plan.vip
    if not then or not now or gone or (then & now) - anew:
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
