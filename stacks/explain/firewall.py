"""The firewall of machines in words: when it begins, whom it cuts off, when it ends."""

from __future__ import annotations

from collections.abc import Container, Iterator
from ipaddress import IPv4Network, collapse_addresses

from stacks.cluster.plan import Plan
from stacks.config.firewall import FirewallSpec, LetInSpec
from stacks.explain.actions import Action
from stacks.phases import firewall

_BEGINS = "filter what comes in: what docs/reference/ports.md lists, and nothing else"
_NOTHING_YET = "nothing is filtered on it yet: nothing to open"


def begins(plan: Plan) -> Iterator[Action]:
    """On a machine that comes, or was left out."""
    if firewall.is_wanted(plan):
        yield Action(phase="firewall-open", text=_NOTHING_YET)
        yield Action(phase="firewall", text=_BEGINS)


def begun(phase: str) -> Action | None:
    """On a machine that stays and had none."""
    text = {"firewall-open": _NOTHING_YET, "firewall": _BEGINS}.get(phase)
    return Action(phase=phase, text=text) if text else None


def ended(was: Container[str], now: Container[str]) -> Iterator[Action]:
    """On a machine that stays: phases then and now."""
    if "firewall" in was and "firewall" not in now:
        yield Action(phase="node", text="its firewall is taken away: all its ports are open")


def api_notices(then: Plan, plan: Plan) -> Iterator[str]:
    """Clients of the API in networks that are let in no longer; what is open already stays."""
    now = _networks(plan.spec.machines.firewall)
    was = _networks(then.spec.machines.firewall)
    if now is None or (was is not None and _lie_in(was, now)):
        return
    listed = ", ".join(map(str, now))
    yield f"the API lets in new connections of {listed} alone, beside machines and pods"


def port_notices(then: Plan, plan: Plan) -> Iterator[str]:
    """What listens on nodes and is in no table: only the user knows of it."""
    was, now = then.spec.machines.firewall, plan.spec.machines.firewall
    if now is None:
        return
    if was is None:
        yield (
            "what listens in the network of its node is reached by new connections only where "
            "the table of ports or machines.firewall.more lets them in"
        )
    elif any(not _is_let_in(one, now.more) for one in was.more):
        yield "machines.firewall.more lets in less: new connections to those ports are dropped"


def _networks(said: FirewallSpec | None) -> list[IPv4Network] | None:
    """That the API is let in from; None: from anywhere."""
    found = [*collapse_addresses(map(IPv4Network, said.api_from if said else ()))]
    return found if found and found[0].prefixlen else None


def _lie_in(was: list[IPv4Network], now: list[IPv4Network]) -> bool:
    return all(any(old.subnet_of(new) for new in now) for old in was)


def _is_let_in(one: LetInSpec, now: tuple[LetInSpec, ...]) -> bool:
    return one in now
