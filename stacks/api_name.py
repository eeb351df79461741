"""The name of the API in a DNS that the stack manages: where its record leads, and in words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from stacks import clouds, phases
from stacks.problems import Problem

if TYPE_CHECKING:  # the plan and the config are made with these
    from stacks.front_door_settings import DnsZoneSpec
    from stacks.memory import Memory
    from stacks.plan import Plan
    from stacks.spec import Spec

Lead = Literal["balancer", "public", "private"]

# Of the record, and how long whoever it no longer leads to goes on serving. Not a setting: it is
# the TTL of before an edit that resolvers have kept, and an alias on AWS has this one anyway.
TTL_S = 60


def zone(spec: Spec) -> DnsZoneSpec | None:
    """The zone in which the stack makes the record; None: it makes none."""
    return spec.front_doors.zone if spec.front_doors.dns == "managed" else None


def name(spec: Spec) -> str:
    """The name that clients outside use, without a port; empty where none is said."""
    return (spec.cluster.endpoint or "").partition(":")[0]


def lead(plan: Plan) -> Lead:
    """What the record leads to: a load balancer, or the masters by turns at one of both addresses.

    Who sees a private zone is in the network, and reaches the private ones.
    """
    if plan.balancer != "none":
        return "balancer"
    cloud, said = clouds.of_plan(plan), zone(plan.spec)
    return "public" if cloud.access == "public" and not (said and said.private) else "private"


def known(plan: Plan) -> tuple[str, ...] | None:
    """The record's addresses; None: only the provider knows them, once they are made."""
    kind = lead(plan)
    if kind == "public" or plan.balancer == "external":
        return None
    if kind == "balancer":
        return clouds.balancer_addresses(plan.spec)
    return tuple(node.address for node in plan.masters)


def words(plan: Plan) -> str:
    """What the record leads to, for people; another text whenever its values are others."""
    addresses, masters = known(plan), [node.name for node in plan.masters]
    listed = f" ({', '.join(addresses)})" if addresses else ""
    match lead(plan):
        case "balancer":
            return f"the {plan.balancer} load balancer{listed}"
        case "public":
            return f"the public addresses of {', '.join(masters)}"
        case "private":
            return f"{', '.join(masters)}{listed}"


def mark(plan: Plan) -> str:
    """Hash of the record: another one whenever it changes."""
    said = zone(plan.spec)
    return phases.digest(name(plan.spec), said.model_dump_json() if said else "", words(plan))


def mismatch(said: DnsZoneSpec, *, domain: str, private: bool) -> str:
    """What is wrong with the zone that the provider has under its id; empty: nothing."""
    found = domain.rstrip(".").lower()
    if found != said.domain:
        return f"frontDoors.zone.domain: zone {said.id} is that of {found}, not of {said.domain}"
    if private != said.private:
        word = str(private).lower()
        return f"frontDoors.zone.private: zone {said.id} says {word}; write that"
    return ""


def changed(before: Memory | None, plan: Plan) -> Iterator[str]:
    """In words, what happens to the record before anybody leaves."""
    then, said = before.plan if before else None, zone(plan.spec)
    if said is None or (before is not None and then is None):
        return
    now = f"{name(plan.spec)} -> {words(plan)}"
    old = zone(then.spec) if then else None
    if then is None or old is None:
        yield f"record {now}"
    elif (was := f"{name(then.spec)} -> {words(then)}") != now:
        yield f"record {now}, no longer {was}"
    elif old != said:
        yield f"record {now}, in zone {said.id or said.domain}, before {old.id or old.domain}"


def deleted(before: Memory | None, plan: Plan) -> Iterator[str]:
    """In words, a record that is taken away at the end."""
    then = before.plan if before else None
    old, new = zone(then.spec) if then else None, zone(plan.spec)
    if then is None or old is None:
        return
    same_zone = new is not None and (old.id, old.domain) == (new.id, new.domain)
    if not same_zone or name(then.spec) != name(plan.spec):
        yield f"record {name(then.spec)} in zone {old.id or old.domain} is deleted"


def warnings_of(before: Memory | None, plan: Plan) -> list[Problem]:
    """A name that an edit takes from those who use it, or from those outside of the network."""
    then, out = before.plan if before else None, []
    if then and zone(then.spec) and zone(plan.spec) and _outer(then) and not _outer(plan):
        text = f"{name(plan.spec)} will lead to {words(plan)}"
        text = f"{text}: clients outside of the network lose the API"
        out.append(Problem(f"machines.{plan.spec.machines.provider}.apiLoadBalancer", text))
    path = "frontDoors.dns" if zone(plan.spec) is None else "frontDoors.zone"
    text = "at the end, and who goes by it loses the API until there is another one of that name"
    return [*out, *(Problem(path, f"{gone} {text}") for gone in deleted(before, plan))]


def _outer(plan: Plan) -> bool:
    """Whether it leads to public addresses."""
    return plan.balancer == "external" or lead(plan) == "public"
