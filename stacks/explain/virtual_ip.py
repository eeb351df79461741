"""When clients of the virtual IP lose it: for a moment, or for good."""

from __future__ import annotations

from collections.abc import Iterator

from stacks.cluster.plan import Plan
from stacks.edits import membership
from stacks.edits.memory import Memory


def away(before: Memory, plan: Plan) -> Iterator[str]:
    """Nobody owns it for a time: it moves to other machines, or its only one is replaced."""
    then = _standby(before.plan) if before.plan else set()
    now, recreated = _standby(plan), set(membership.rebuilt(before, plan))
    gone = before.plan is not None and before.plan.vip != plan.vip
    if not then or not now or gone or (then & now) - recreated:
        return
    if then <= recreated:
        yield f"the VIP {plan.vip} is unavailable while {', '.join(sorted(then))} is replaced"
    else:
        # Masters and load balancers are standby for each other; one pool is not for another.
        handed = before.plan and bool(before.plan.load_balancers) != bool(plan.load_balancers)
        how_long = "about a second" if handed else "some seconds"
        where = ", ".join(sorted(now))
        yield f"the VIP {plan.vip} is unavailable for {how_long}, while it moves to {where}"


def ends(then: Plan, plan: Plan) -> Iterator[str]:
    """It is released, becomes another one, or is moved by something else from now on."""
    if then.vip and then.vip == plan.vip and then.holders and not plan.holders:
        yield (
            f"keepalived gives up the VIP {then.vip}: nobody answers there until your own failover "
            "has brought it to one of the machines"
        )
    if then.vip and not plan.vip:
        yield f"the VIP {then.vip} is released: its clients lose the API"
    elif then.vip != plan.vip and then.vip:
        yield f"the VIP {then.vip} becomes {plan.vip}: clients of the old one lose the API"


def moves(before: Memory, then: Plan, plan: Plan) -> Iterator[str]:
    """To another one that stays on standby, where its owner is one of these."""
    if not then.vip or then.vip != plan.vip:
        return
    was, now, recreated = _standby(then), _standby(plan), {*membership.rebuilt(before, plan)}
    # One that was compromised may run on, and gives it up by the cluster's word.
    dead = {node.name for node in plan.away if node.state == "lost"}
    going = ((was - now) | (was & recreated)) - dead
    if going and (was & now) - recreated:
        yield f"the VIP {plan.vip} moves, in about a second, if {_listed(going)} has it"
    yield from _packages(then, plan, (was & now) - recreated, now)


def _packages(then: Plan, plan: Plan, stay: set[str], now: set[str]) -> Iterator[str]:
    """A load balancer hands it over before packages change, a master before it reboots."""
    wanted = plan.spec.os
    reboots = wanted.reboot != "never"
    if not wanted.packages or wanted.packages == then.spec.os.packages or not stay:
        return
    if not reboots and not plan.load_balancers:
        return
    if len(now) == 1:
        how = "is updated and reboots" if reboots else "is updated"
        yield f"the VIP {plan.vip} is unavailable while {_listed(now)} {how}"
    else:
        when = "its owner reboots" if reboots else "packages of its owner change"
        yield f"the VIP {plan.vip} moves, in about a second, before {when}"


def _listed(names: set[str]) -> str:
    return " or ".join(sorted(names))


def _standby(plan: Plan) -> set[str]:
    """Who can own it: a load balancer in maintenance cannot."""
    resting = {node.name for node in plan.load_balancers if node.state != "active"}
    return {node.name for node in plan.holders} - resting
