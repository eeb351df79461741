"""Machines of clouds behind a tunnel: no public address, one way in, which begins on this computer."""

from __future__ import annotations

import socket

import pytest
import yaml

from tests.plan.graph import Graph
from tests.plan.settled import Stacks, assert_exactly
from tests.plan.test_clouds import Config, kinds, machines_of, of_clouds, user_data
from tests.toolchain.sshd import free_port
from tests.unit.configs import aws, behind_tunnel, gcp
from toolchain.values import Value, plain

# What a stack has for its tunnel, and for a bastion with a public address.
TUNNEL = {
    "gcp": {"prod-tunnel", "prod-ssh-tunnel-let-in"},
    "aws": {"prod-tunnel", "prod-tunnel-role", "prod-tunnel-profile", "prod-tunnel-amazonssmmanagedinstancecore"},
}  # fmt: skip
BASTION = {
    "gcp": {"prod-bastion", "prod-bastion-address", "prod-ssh-bastion-let-in", "prod-api-clients-let-in"},
    "aws": {"prod-bastion", "prod-bastion-address", "prod-ssh-bastion-from-203-0-113-0-24",
            "prod-api-clients-from-203-0-113-0-24", "prod-balancer-from-203-0-113-0-24"},
}  # fmt: skip


def listed(value: Value) -> list[dict[str, Value]]:
    found = plain(value)
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


@pytest.mark.parametrize(("config", "provider"), [(gcp, "gcp"), (aws, "aws")])
def test_behind_a_tunnel_nothing_has_a_public_address_and_all_connections_begin_here(
    stacks: Stacks, config: Config, provider: str
) -> None:
    engine, run = stacks.settled(config(behind_tunnel(provider)))
    machines = {machine.name: machine for machine in machines_of(run)}
    bastion = machines["prod-tunnel"]
    for machine in machines.values():
        doors = listed(machine.inputs.get("networkInterfaces"))
        assert not [door for door in doors if door.get("accessConfigs")]
        assert not plain(machine.inputs.get("associatePublicIpAddress"))
    addresses = {r.name for r in of_clouds(run) if r.type.endswith((":Address", ":Eip"))}
    nat = {f"prod-nat-eu-central-1{zone}-address" for zone in "abc"}
    assert addresses - {"prod-api-internal-address"} == (nat if provider == "aws" else set())
    key = yaml.safe_load(user_data(bastion))["ssh_keys"]["ecdsa_public"]
    commands = [c for c in run.commands if c.value("connection")]
    assert commands
    for command in commands:
        connection = command.value("connection")
        assert isinstance(connection, dict)
        jump = connection["proxy"]
        assert isinstance(jump, dict)
        assert (jump["host"], jump["port"], jump["user"]) == ("127.0.0.1", 20022, "ops")
        assert (jump["hostKey"], jump["dialErrorLimit"]) == (key, 120)
        assert str(connection["host"]).startswith("10.20.")
        assert connection["hostKey"] != key
    # Machines wait for it; the output `ssh` tells programs of this computer the same way.
    told = plain(engine.outputs["ssh"])
    assert isinstance(told, dict)
    assert len(told) == 5
    for facts in told.values():
        assert isinstance(facts, dict)
        way = facts["bastion"]
        assert isinstance(way, dict)
        assert (way["host"], way["port"], way["hostKey"]) == ("127.0.0.1", 20022, key)
    assert "prod-tunnel" in Graph(run).before("prod-worker-1-machine")
    assert TUNNEL[provider] <= {r.name for r in of_clouds(run)}


def test_at_google_iap_alone_comes_to_the_bastion(stacks: Stacks) -> None:
    _, run = stacks.settled(gcp(behind_tunnel("gcp")))
    doors = {r.name: r for r in of_clouds(run) if r.type.endswith(":Firewall")}
    outside = {name: plain(r.inputs["sourceRanges"]) for name, r in doors.items() if r.inputs.get("sourceRanges")}  # fmt: skip
    assert outside.pop("prod-api-health-let-in")
    assert outside == {"prod-ssh-tunnel-let-in": ["35.235.240.0/20"]}
    let_in = doors["prod-ssh-tunnel-let-in"]
    assert plain(let_in.inputs["targetTags"]) == ["prod-bastion"]
    assert plain(let_in.inputs["allows"]) == [{"protocol": "tcp", "ports": ["22"]}]
    assert plain(run.named("prod-tunnel").inputs["tags"]) == ["prod-bastion"]
    (door,) = listed(run.named("prod-tunnel").inputs["networkInterfaces"])
    assert door["networkIp"] == "10.20.0.3"


def test_on_aws_the_bastion_alone_may_speak_with_ssm_and_nobody_comes_in(stacks: Stacks) -> None:
    _, run = stacks.settled(aws(behind_tunnel("aws")))
    bastion, nodes = run.named("prod-tunnel"), [m for m in machines_of(run) if "-machine" in m.name]
    assert bastion.text("iamInstanceProfile") == "prod-tunnel-eu-central-1"
    assert {node.text("iamInstanceProfile") for node in nodes} == {"prod-nodes-eu-central-1"}
    (grant,) = [r for r in of_clouds(run) if r.type.endswith(":RolePolicyAttachment")]
    assert (grant.text("role"), grant.text("policyArn")) == (
        "prod-tunnel-eu-central-1",
        "arn:aws:iam::aws:policy/AmazonSSMManagedInstanceCore",
    )
    rules = [r for r in of_clouds(run) if r.type.endswith(":SecurityGroupIngressRule")]
    assert not [r.name for r in rules if r.inputs.get("cidrIpv4")]
    group = run.named("prod-bastion-doors").id
    assert not [r.name for r in rules if r.text("securityGroupId") == group]
    # In a subnet with a fix through NAT, where the agent begins; the others have none.
    assert bastion.text("subnetId") == run.named("prod-subnet-eu-central-1a").id
    assert bastion.text("privateIp") == "10.20.0.4"
    made = yaml.safe_load(user_data(bastion))
    assert "amazon-ssm-agent" in str(made["runcmd"])
    assert not [m.name for m in nodes if "runcmd" in yaml.safe_load(user_data(m))]


def test_the_image_of_a_tunnels_bastion_is_one_with_the_agent(stacks: Stacks) -> None:
    """The machines' own, Debian's, has none."""
    engine = stacks.new(aws(behind_tunnel("aws")))
    engine.images = {
        "x86_64": "ami-0aaaaaaaaaaaaaaaa",
        "ubuntu/images/hvm-ssd-gp3/ubuntu-noble-24.04-amd64-*": "ami-0eeeeeeeeeeeeeeee",
    }
    run = engine.up(aws(behind_tunnel("aws")))
    assert run.named("prod-tunnel").text("ami") == "ami-0eeeeeeeeeeeeeeee"
    assert run.named("prod-worker-1-machine").text("ami") == "ami-0aaaaaaaaaaaaaaaa"


@pytest.mark.parametrize(("config", "provider"), [(gcp, "gcp"), (aws, "aws")])
def test_from_bastion_to_tunnel_the_new_way_is_there_before_the_old_one_goes(
    stacks: Stacks, config: Config, provider: str
) -> None:
    """No machine is touched by the cloud; commands run again by the new way, then the old one is deleted."""
    engine, _ = stacks.settled(config({}))
    run = engine.up(config(behind_tunnel(provider)))
    assert kinds(run, "+") == TUNNEL[provider]
    assert kinds(run, "-") == BASTION[provider]
    assert not kinds(run, "~") | kinds(run, "!")
    changed = [c.after for c in run.changes if c.mark == "~" and c.after and "connection" in c.after.inputs]  # fmt: skip
    assert {r.name for r in changed} >= {"prod-master-1-master", "prod-worker-2-node", "prod-gate"}
    graph = Graph(run)
    assert all("prod-tunnel" in graph.before(r.name) for r in changed)
    back = engine.up(config({}))
    assert (kinds(back, "+"), kinds(back, "-")) == (BASTION[provider], TUNNEL[provider])
    assert not kinds(back, "~") | kinds(back, "!")
    assert_exactly(engine.up(config({})), [])


def test_an_up_says_when_nobody_holds_the_tunnel(stacks: Stacks) -> None:
    free = free_port()
    config = gcp({**behind_tunnel("gcp"), "machines.gcp.tunnelPort": free})
    engine, run = stacks.settled(config)
    words = f"nothing listens at 127.0.0.1:{free}, through which machines are reached: run `make tunnel STACK=test`"  # fmt: skip
    assert [m for m in run.messages if words in m]
    with socket.create_server(("127.0.0.1", free)):
        assert not [m for m in engine.up(config).messages if words in m]
