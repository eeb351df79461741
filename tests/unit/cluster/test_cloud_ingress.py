"""Ingress in a cloud: which pools, what the config may say of it, and what is told of its end."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from stacks.cluster import clouds
from stacks.cluster.certificates import table
from stacks.edits import memory, transition
from stacks.explain import report
from stacks.phases import desired
from tests.unit.configs import aws, gcp, lab, planned, problems

Config = Callable[[Mapping[str, object] | None], dict[str, object]]
WANTED = "frontDoors.ingress"


@pytest.mark.parametrize("config", [gcp, aws])
def test_pools_of_workers_alone_are_behind_it_and_nothing_runs_on_machines(config: Config) -> None:
    plan = planned(config({WANTED: {}}))
    assert clouds.ingress_pools(plan.spec) == ("worker",)
    assert plan.has_ingress_balancer
    assert plan.ingress == ()
    assert not [leaf for leaf in table(plan) if leaf.name == "ingress"]
    usual = planned(config({}))
    assert not usual.has_ingress_balancer
    for node, other in zip(plan.nodes, usual.nodes, strict=True):
        assert desired.of_phases(plan, node) == desired.of_phases(usual, other)


@pytest.mark.parametrize(
    ("config", "path", "text"),
    [
        (gcp({WANTED: {"hosts": ["shop.example.com"]}}), f"{WANTED}.hosts", "the ingress controller ends it"),
        (aws({WANTED: {"certificates": [{"certificate": "a.pem", "key": "b.pem"}]}}), f"{WANTED}.certificates", "the ingress controller ends it"),
        (gcp({WANTED: {"nodePort": 30081}}), f"{WANTED}.nodePort", "ports 80 and 443 of nodes"),
        (gcp({WANTED: {"proxyProtocol": True}}), f"{WANTED}.proxyProtocol", "is not spoken by load balancers of gcp"),
        (aws({WANTED: {"pools": ["master"]}}), f"{WANTED}.pools[0]", "is not a pool of workers alone; there are worker"),
        (aws({"pools.master.roles": ["etcd", "master", "worker"], "pools.worker.count": 0, WANTED: {"pools": ["master"]}}), f"{WANTED}.pools[0]", "is not a pool of workers alone"),
        (gcp({"machines.gcp.ingressFrom": ["192.0.2.0/24"]}), "machines.gcp.ingressFrom", "is for frontDoors.ingress"),
        (gcp({WANTED: {}, "machines.gcp.ingressFrom": ["192.0.2.0/24", "192.0.2.0/24"]}), "machines.gcp.ingressFrom[1]", "is there twice"),
        (aws({WANTED: {}, "machines.aws.access": "public", "machines.aws.subnets.eu-central-1a": {"cidr": "10.20.0.0/20"}}), "machines.aws.subnets.eu-central-1a.publicCidr", "external load balancers are in a public subnet"),
        (lab({WANTED: {"hosts": ["a.example.com"]}}), WANTED, "listens at the VIP, which is missing"),
    ],
)  # fmt: skip
def test_what_no_load_balancer_of_a_cloud_does_is_refused(
    config: dict[str, object], path: str, text: str
) -> None:
    assert text in dict(problems(config))[path]


@pytest.mark.parametrize("config", [gcp, aws])
def test_its_end_is_told_to_those_who_use_it(config: Config) -> None:
    before, plan = planned(config({WANTED: {}})), planned(config({}))
    known = memory.read(memory.of(before))
    said = report.report(known, plan, transition.check(known, plan))
    found = {one.audience: one.notices for one in said.headline.disruption}
    assert found["ingress"] == ("nothing serves ports 80 and 443 any more",)
    assert not [text for text in found["API clients outside"] if "load balancer" in text]
    assert "another one has another address" in said.headline.way_back


def test_a_config_that_does_not_say_from_where_stays_what_it_was() -> None:
    assert "ingressFrom" not in planned(gcp()).spec.model_dump_json(by_alias=True)


def test_a_zone_that_its_load_balancer_would_leave_is_refused() -> None:
    """AWS would delete it, and make another one with another name."""
    zones = [f"eu-central-1{zone}" for zone in "ab"]
    few = {"machines.aws.fewZones": True, "machines.aws.apiLoadBalancer": "none", WANTED: {}}
    two = {**few, "pools.master.zones": zones, "pools.worker.zones": zones}
    one = {**few, "pools.master.zones": zones[:1], "pools.worker.zones": zones[:1]}
    kept = {"nodes": {f"{name}": {"generation": 2} for name in ("worker-1", "worker-2")}}
    before = memory.read(memory.of(planned(aws({**two, "pools.master.zones": zones[:1]}))))
    with pytest.raises(transition.TransitionError) as refused:
        transition.check(before, planned(aws({**one, **kept})))
    assert "the load balancer for ingress would be deleted and made again" in str(
        refused.value.problems
    )
