"""The load balancer for what runs in a cluster in a cloud: who is behind it, who is let in, what an edit changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from tests.plan.graph import Graph
from tests.plan.registration import Resource, Run
from tests.plan.settled import Stacks, assert_exactly
from tests.unit.configs import aws, gcp, hcloud
from toolchain.values import Value, plain

Config = Callable[[Mapping[str, object]], dict[str, object]]
INGRESS: dict[str, object] = {"frontDoors.ingress": {}}
OTHERS = {"pools.gpu": {"roles": ["worker"], "count": 1, "addressOffset": 200}}
ZONES = {"gcp": ["europe-west3-a"], "aws": ["eu-central-1a"], "hcloud": ["fsn1"]}


def others(config: Config) -> dict[str, object]:
    return {"pools.gpu": {**OTHERS["pools.gpu"], "zones": ZONES[config.__name__]}}


def of_type(run: Run, end: str) -> list[Resource]:
    return [one for one in run.custom if one.type.endswith(end) and "-ingress" in one.name]


def said(one: Resource, key: str) -> Value:
    return plain(one.inputs.get(key))


@pytest.mark.parametrize("config", [gcp, aws, hcloud])
def test_its_address_is_an_output_and_without_it_there_is_none(
    stacks: Stacks, config: Config
) -> None:
    engine, _ = stacks.settled(config(INGRESS))
    assert plain(engine.outputs["ingressAddress"])
    engine.up(config({}))
    assert "ingressAddress" not in engine.outputs


def test_at_google_ports_arrive_as_they_are_from_whoever_is_let_in(stacks: Stacks) -> None:
    clients = ["198.51.100.0/24", "203.0.113.0/24"]
    _, run = stacks.settled(gcp({**INGRESS, "machines.gcp.ingressFrom": clients}))
    [rule] = of_type(run, ":ForwardingRule")
    assert said(rule, "ports") == ["80", "443"]
    assert (rule.text("loadBalancingScheme"), rule.text("ipProtocol")) == ("EXTERNAL", "TCP")
    [check] = of_type(run, ":RegionHealthCheck")
    assert said(check, "tcpHealthCheck") == {"port": 80}
    doors = {one.name: one for one in of_type(run, ":Firewall")}
    for port in ("80", "443"):
        door = doors[f"prod-ingress-{port}-let-in"]
        assert said(door, "allows") == [{"protocol": "tcp", "ports": [port]}]
        assert said(door, "sourceRanges") == clients
    assert "35.191.0.0/16" in str(said(doors["prod-ingress-health-let-in"], "sourceRanges"))
    assert {str(said(one, "targetTags")) for one in doors.values()} == {"['prod-ingress']"}
    tagged = {
        one.name for one in run.custom
        if one.type.endswith(":Instance") and "prod-ingress" in str(said(one, "tags"))
    }  # fmt: skip
    assert tagged == {"prod-worker-1-machine", "prod-worker-2-machine"}


def test_on_aws_nodes_are_reached_by_the_load_balancer_alone(stacks: Stacks) -> None:
    _, run = stacks.settled(aws({**INGRESS, "frontDoors.ingress": {"proxyProtocol": True}}))
    [balancer] = of_type(run, ":LoadBalancer")
    assert said(balancer, "internal") is False
    # AWS makes no public one in a VPC without an internet gateway.
    assert "prod-public-route" in Graph(run).before(balancer.name)
    groups = of_type(run, ":TargetGroup")
    assert [said(one, "port") for one in groups] == [80, 443]
    for one in groups:
        assert (said(one, "proxyProtocolV2"), said(one, "preserveClientIp")) == (True, "false")
    rules = {one.name: one for one in of_type(run, ":SecurityGroupIngressRule")}
    for port in (80, 443):
        clients = rules[f"prod-ingress-{port}-from-0-0-0-0-0"]
        assert (said(clients, "cidrIpv4"), said(clients, "fromPort")) == ("0.0.0.0/0", port)
        inner = rules[f"prod-ingress-{port}-from-balancer"]
        assert said(inner, "cidrIpv4") is None
        assert said(inner, "referencedSecurityGroupId")
    assert len(rules) == 4
    targets = of_type(run, ":TargetGroupAttachment")
    assert {(said(one, "targetId"), said(one, "port")) for one in targets} == {
        (f"10.20.{16 * (number - 1)}.{100 + number}", port)
        for number in (1, 2)
        for port in (80, 443)
    }


@pytest.mark.parametrize("config", [gcp, aws, hcloud])
def test_workers_that_come_are_behind_it_and_of_the_chosen_pools_alone(
    stacks: Stacks, config: Config
) -> None:
    start = {**others(config), "frontDoors.ingress": {"pools": ["worker"]}}
    engine, born = stacks.settled(config(start))
    behind = {one.name.partition("-ingress")[0] for one in born.custom if "-ingress-target" in one.name}  # fmt: skip
    assert {name for name in behind if "-worker-" in name} == {"prod-worker-1", "prod-worker-2"}
    assert not [name for name in behind if "gpu" in name or "master" in name]
    run = engine.up(config({**start, "pools.worker.count": 3}))
    made = {c.name for c in run.changes if c.mark == "+" and "-ingress-target" in c.name}
    assert made
    assert {name.partition("-ingress")[0] for name in made} == {"prod-worker-3"}
    assert not [c for c in run.changes if c.mark in "~!-" and "-ingress" in c.name]
    shrunk = engine.up(config(start))
    assert {c.name for c in shrunk.changes if c.mark == "-" and "-ingress-target" in c.name} == made
    assert_exactly(engine.up(config(start)), [])
