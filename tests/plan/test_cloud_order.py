"""What clouds need in which order, while they make and take away: what their APIs refuse, or never answer."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from stacks.edits import memory, transition
from tests.plan.clouds import is_cloud
from tests.plan.graph import Graph
from tests.plan.settled import Stacks
from tests.plan.told_pairs import Pair, told
from tests.unit.configs import aws, behind_tunnel, gcp, hcloud, planned
from toolchain.values import plain

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


# Who asks the provider about a machine that is gone already: AWS answers that an address is free, and takes no offence.
_PATIENT = ("aws:ec2/eip:Eip",)


@pytest.mark.parametrize("config", [gcp, aws, hcloud])
def test_what_hangs_on_a_machine_goes_with_it_and_asks_nothing_of_a_dead_one(
    stacks: Stacks, config: Callable[..., dict[str, object]]
) -> None:
    """A machine that the cloud ended: stopping it, or taking it out of a group, is refused for good."""
    _, run = stacks.settled(config({}))
    machines = {one.urn: one for one in run.custom if one.type.endswith((":Instance", ":Server"))}
    words = {
        urn: {one.id, str(plain(one.outputs.get("selfLink", one.id)))}
        for urn, one in machines.items()
    }
    hangs = [
        (one, urn)
        for one in run.custom
        if is_cloud(one.type) and one.type not in _PATIENT
        for urn, known in words.items()
        if one.urn != urn
        and known & {str(plain(value)).removesuffix(".0") for value in one.inputs.values()}
    ]
    of_each = 2 if config is hcloud else 1  # its disk, and where it is a target, that
    assert len({one.name for one, _ in hangs}) == 3 * of_each
    assert [one.name for one, urn in hangs if one.deleted_with != urn] == []


@pytest.mark.parametrize("kind", ["internal", "external"])
def test_a_balancer_on_aws_that_leaves_a_zone_is_deleted_before_it_is_made_anew(
    stacks: Stacks, kind: str
) -> None:
    """Its name, and its inner addresses, can be taken once."""
    start: dict[str, object] = {"machines.aws.apiLoadBalancer": kind, "cluster.endpoint": "api.example.com", "frontDoors.dns": "none"}  # fmt: skip
    start |= {"pools.master.count": 1, "pools.worker.count": 3, "machines.aws.deletionProtection": False}  # fmt: skip
    start |= {"pools.worker.zones": ["eu-central-1a", "eu-central-1b"], "nodes.worker-3.zone": "eu-central-1c"}  # fmt: skip
    start |= {"pools.master.zones": ["eu-central-1a"]}
    edit = {**start, "pools.worker.count": 2}
    del edit["nodes.worker-3.zone"]
    before, after = planned(aws(start)), planned(aws(edit))
    with pytest.raises(transition.TransitionError) as refused:
        transition.check(memory.read(memory.of(before)), after)
    ((path, text),) = refused.value.problems
    assert path == "machines.aws.subnets"
    assert "cannot leave eu-central-1c" in text
    allowed = {**edit, "allow": [f"balancer-replaced/{kind}"]}
    found = told(stacks, Pair(kind, aws(start), aws(allowed)))
    assert found.findings() == []
    order = [str(change) for change in found.run.changes]
    assert f"! prod-api-{kind}" in order
    (anew,) = (one for one in found.run.custom if one.name == f"prod-api-{kind}")
    assert anew.delete_before_replace
    # One zone more is taken in place.
    narrow = {**start, "nodes.worker-3.zone": "eu-central-1b"}
    wide = {**start, "nodes.worker-3.generation": 2}
    transition.check(memory.read(memory.of(planned(aws(narrow)))), planned(aws(wide)))
    wider = told(stacks, Pair(f"{kind}, wider", aws(narrow), aws(wide)))
    assert wider.findings() == []
    assert f"~ prod-api-{kind}" in [str(change) for change in wider.run.changes]


@pytest.mark.parametrize("config", [gcp, aws])
def test_a_machine_that_drops_packets_is_not_dialled_for_hours(
    stacks: Stacks, config: Callable[..., dict[str, object]]
) -> None:
    """Through a bastion the official plugin bounds no try, and 40 of them take 85 minutes."""
    for edits in ({}, behind_tunnel(config.__name__)):
        _, run = stacks.settled(config(edits))
        dialling = [one for one in run.custom if "connection" in one.inputs]
        assert len(dialling) > 20
        assert {one.timeouts for one in dialling} == {frozenset({"20m"})}
