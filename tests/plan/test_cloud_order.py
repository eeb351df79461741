"""What clouds need in which order, while they make and take away: what their APIs refuse, or never answer."""

from __future__ import annotations

import re

import pytest

from tests.plan.graph import Graph
from tests.plan.settled import Stacks
from tests.unit.configs import aws, behind_tunnel

EXTERNAL = {"machines.aws.apiLoadBalancer": "external", "cluster.endpoint": "api.example.com"}


@pytest.mark.parametrize("more", [{}, {"machines.aws.access": "public"}, {**behind_tunnel("aws"), "machines.aws.apiFrom": ["203.0.113.0/24"]}])  # fmt: skip
def test_whatever_faces_the_internet_on_aws_waits_for_the_gateway_and_its_route(
    stacks: Stacks, more: dict[str, object]
) -> None:
    """AWS makes neither a public load balancer nor a usable address in a VPC without a gateway."""
    _, run = stacks.settled(aws({**EXTERNAL, **more}))
    graph = Graph(run)
    facing = [
        one.name
        for one in run.custom
        if re.search(r":(NatGateway|LoadBalancer)$", one.type)
        or (one.type.endswith(":Eip") and one.inputs.get("instance"))
    ]
    assert [name for name in facing if name.endswith("api-external")]
    for name in facing:
        assert {"prod-internet", "prod-public-route"} <= graph.before(name), name
