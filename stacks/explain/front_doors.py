"""The virtual IP in words: who is standby for it, where it goes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from stacks.cluster.plan import Plan
from stacks.explain.actions import Action
from stacks.order.difference import Difference
from stacks.render import vip_holders


def begun(
    phase: str, was: Mapping[str, str] | None, now: Mapping[str, str], vip: str
) -> Action | None:
    """A front door that a machine did not have: values of its phase then (None: none) and now."""
    if phase == "vip" and (was or {}).get("VIP") != now["VIP"]:
        return moved(was, now)
    if was is not None:
        return None
    match phase:
        case "vip-peers":
            return lets_hear(vip)
        case "vip-away":
            return hands_over(vip)
        case "ingress":
            return ends_tls(vip)
    return None


def ended(
    was: Mapping[str, Mapping[str, str]], now: Mapping[str, Mapping[str, str]]
) -> Iterator[Action]:
    """Front doors that a machine has no longer: values of its phases then and now."""
    if not {"vip", "vip-away"} & {*now}:
        if "vip" in was:
            yield given_up(was["vip"])
        if "vip-away" in was:
            yield alone_again()
    if "ingress" in was and "ingress" not in now and "vip-away" not in now:
        yield Action(phase="node", text="the ingress tier stops: nobody serves ports 80 and 443")


def stands_by(vip: str) -> Action:
    """A machine that can hold it from now on."""
    return Action(phase="vip", text=f"run as standby for the VIP {vip}")


def moved(was: Mapping[str, str] | None, now: Mapping[str, str]) -> Action:
    """The values of the vip phase then, None if there was none, and now."""
    if was is None:
        return stands_by(now["VIP"])
    text = f"VIP {was['VIP']} -> {now['VIP']}: who knows the old one only loses the API"
    return Action(phase="vip", text=text)


def hands_over(vip: str) -> Action:
    """A master that held it, or stood by, and load balancers do from now on."""
    text = f"keepalived stops: load balancers run as standby and take the VIP {vip}"
    return Action(phase="vip-away", text=text)


def lets_hear(vip: str) -> Action:
    """A master beside load balancers that are to hold it."""
    return Action(phase="vip-peers", text=f"let the load balancers hear who has the VIP {vip}")


def alone_again() -> Action:
    """A master beside which load balancers were, where keepalived is none of the stack's."""
    return Action(phase="vip-away", text="load balancers leave; nothing changes on this machine")


def told_to_go(vip: str) -> Action:
    """A load balancer that leaves, or is dead."""
    text = f"is not listed any more, and gives up the VIP {vip} by the cluster's word"
    return Action(phase="vip-holders", text=text)


def given_up_first(vip: str) -> Action:
    """A dead load balancer, before anything else; empty: nobody holds a VIP by keepalived."""
    text = f", and gives up the VIP {vip} where it runs on" if vip else ""
    return Action(phase="first", text=f"is not listed any more{text}")


def rests(vip: str, *, now: bool) -> Action:
    """A load balancer whose maintenance begins or ends."""
    if now:
        return Action(
            phase="vip", text=f"give up the VIP {vip} for maintenance, HAProxy keeps running"
        )
    return Action(phase="vip", text=f"run as standby for the VIP {vip} again, maintenance is over")


def given_up(was: Mapping[str, str]) -> Action:
    """Nobody holds it any more."""
    text = f"keepalived stops: the VIP {was['VIP']} is nobody's, and who uses it loses the API"
    return Action(phase="node", text=text)


def ends_tls(vip: str) -> Action:
    """A machine of the ingress tier from now on."""
    text = f"end TLS at {vip.partition(':')[0]}, ports 80 and 443, for the ingress controller"
    return Action(phase="ingress", text=text)


def beside(plan: Plan) -> Iterator[Action]:
    """A new master beside load balancers."""
    if plan.holders:
        yield lets_hear(plan.vip)
    text = (
        "keepalived is none of its own: load balancers run as standby"
        if plan.holders
        else "keepalived is none of the stack's"
    )
    yield Action(phase="vip-away", text=text)


def holders(then: Plan | None, plan: Plan, running: Collection[Difference]) -> tuple[str, ...]:
    """What the cluster is told of who may hold it; `running`: the command that tells it."""
    if then is None or not then.holders:
        return ("the cluster is told which load balancers may have it",) if plan.holders else ()
    if not plan.holders:
        return ("the list of who may have it is left as it is",)
    if vip_holders.vip_holders(then) != vip_holders.vip_holders(plan):
        return ("the cluster is told which load balancers may have it now",)
    return ("who may have it is told again, nothing changes",) if running else ()
