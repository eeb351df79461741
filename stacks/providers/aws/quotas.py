"""What a cluster takes of what an account on AWS has, where that is little at first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stacks.config.clouds import AwsSpec
from stacks.config.problems import Problem
from stacks.config.spec import Spec
from stacks.providers import cloud
from stacks.providers.places import Place

_ELASTIC_IPS = 5  # of a region (Amazon VPC quotas, "Elastic IP addresses per Region")


def nat_zone(said: AwsSpec, zones: Sequence[str], zone: str) -> str:
    """Where the NAT gateway is that machines of a zone go out by."""
    return zone if said.nat_gateways == "zone" else zones[0]


def elastic_ips(spec: Spec, places: Sequence[Place]) -> int:
    """How many are allocated: of NAT gateways, of a bastion, or of public machines."""
    said = spec.machines.aws
    if said is None:
        return 0
    if said.access == "public":
        return len(places)
    zones = cloud.zones(spec, said.subnets)
    nats = {nat_zone(said, zones, zone) for zone in zones} if said.vpc_id is None else set()
    return len(nats) + (said.access == "bastion")


def warnings(spec: Spec, places: Sequence[Place]) -> Iterator[Problem]:
    """More Elastic IPs than an account has that never asked for some."""
    said, count = spec.machines.aws, elastic_ips(spec, places)
    if said is None or count <= _ELASTIC_IPS:
        return
    text = (
        f"takes {count} Elastic IPs, and an account has {_ELASTIC_IPS} of a region until it asks "
        "for more (Service Quotas, EC2-VPC Elastic IPs)"
    )
    ways = {"public": "access: bastion takes fewer", "bastion": "natGateways: one takes fewer"}
    yield Problem("machines.aws", "; ".join(filter(None, (text, ways.get(said.access)))))
