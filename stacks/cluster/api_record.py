"""The name of the API in a DNS that the stack manages: where its record leads, and in words."""

from __future__ import annotations

from typing import Literal

from stacks.cluster import cloud_machines, clouds, digests
from stacks.cluster.plan import Plan
from stacks.config.front_doors import DnsZoneSpec
from stacks.config.spec import Spec

Lead = Literal["balancer", "public", "private"]

# Of the record, and how long whoever it no longer points to keeps serving. Not a setting: it is
# the TTL of before an edit that resolvers have kept, and an alias on AWS has this one anyway.
TTL_S = 60


def zone(spec: Spec) -> DnsZoneSpec | None:
    """The zone in which the stack makes the record; None: it makes none."""
    return spec.front_doors.zone if spec.front_doors.dns == "managed" else None


def name(spec: Spec) -> str:
    """The name that clients outside use, without a port; empty where none is said."""
    return (spec.cluster.endpoint or "").partition(":")[0]


def lead(plan: Plan) -> Lead:
    """What the record points to: a load balancer, or all masters at one of both addresses.

    Who sees a private zone is in the network, and reaches the private ones.
    """
    if plan.balancer != "none":
        return "balancer"
    cloud, said = cloud_machines.of_plan(plan), zone(plan.spec)
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
    """What the record points to, for people; another text whenever its values are others."""
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
    return digests.digest(name(plan.spec), said.model_dump_json() if said else "", words(plan))


def checked(said: DnsZoneSpec, zone: str, *, domain: str, private: bool) -> str:
    """The zone, which is there: its ID or name. Raises ValueError where another one is meant."""
    trouble = mismatch(said, domain=domain, private=private)
    if trouble:
        raise ValueError(trouble)
    return zone


def mismatch(said: DnsZoneSpec, *, domain: str, private: bool) -> str:
    """What is wrong with the zone that the provider has under its id; empty: nothing."""
    found = domain.rstrip(".").lower()
    if found != said.domain:
        return f"frontDoors.zone.domain: zone {said.id} is that of {found}, not of {said.domain}"
    if private != said.private:
        word = str(private).lower()
        return f"frontDoors.zone.private: zone {said.id} says {word}; write that"
    return ""
