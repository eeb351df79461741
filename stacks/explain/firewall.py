"""The firewall of machines in words: whom it keeps out from now on, when it ends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from ipaddress import IPv4Network, collapse_addresses

from stacks.cluster.plan import Plan
from stacks.config.ports import API_PORT
from stacks.explain.actions import Action
from stacks.render.firewall import ANYBODY, span

_Phases = Mapping[str, Mapping[str, str]]


def ended(was: _Phases, now: _Phases) -> Iterator[Action]:
    """On a machine that stays: values of its phases then and now."""
    if "FIREWALL" in was["node"] and "FIREWALL" not in now["node"]:
        yield Action(phase="node", text="its firewall is taken away: nothing is filtered any more")


def api_notices(then: Plan, plan: Plan) -> Iterator[str]:
    """Clients of the API in networks that may connect no longer."""
    was, now = _of_api(then), _of_api(plan)
    if any(not any(old.subnet_of(new) for new in now) for old in was):
        listed = ", ".join(map(str, now))
        yield f"the API lets in new connections of {listed} and of pods alone"


def port_notices(then: Plan, plan: Plan) -> Iterator[str]:
    """What listens on nodes and is in no table: only the user knows of it."""
    if plan.spec.machines.firewall and not then.spec.machines.firewall:
        yield (
            "what listens in the network of its node is reached by new connections only where "
            "the table of ports or machines.firewall.more lets them in"
        )


def _of_api(plan: Plan) -> list[IPv4Network]:
    """Beside pods, which are let in anyway."""
    said = plan.spec.machines.firewall
    listed = [*said.networks, *said.api_from] if said else [*ANYBODY]
    for one in said.more if said else ():
        first, last = span(one)
        if one.protocol == "tcp" and first <= API_PORT <= last:
            listed += one.from_ or ANYBODY
    others = (one for one in listed if one != plan.spec.cluster.pod_cidr)
    return [*collapse_addresses(map(IPv4Network, others))]
