"""Machines on Hetzner Cloud: every resource fits its provider, and edits change what they say."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest
import yaml

from stacks.cluster import clouds, firewall
from tests.plan import clouds as providers
from tests.plan.graph import Graph
from tests.plan.registration import Resource, Run
from tests.plan.settled import Stacks, assert_changes, assert_exactly
from tests.plan.told_pairs import Pair, told
from tests.unit.configs import hcloud, planned
from toolchain.values import Secret, Value, plain

Edits = Mapping[str, object]

GATE = ["! prod-acceptance-attempt", "~ prod-nodes", "~ prod-gate"]
ADDRESSES = ["! prod-addon-serving-certificates-attempt", "~ prod-addon-serving-certificates"]
OUTSIDE = {"machines.hcloud.apiLoadBalancer": "external", "machines.hcloud.apiFrom": ["0.0.0.0/0"]}
OFF = {"machines.hcloud.deletionProtection": False}
ALONE = {"pools.master.count": 1}
OF_ETCD = {"pools.etcd": {"roles": ["etcd"], "count": 3, "zones": ["fsn1", "nbg1", "hel1"]}}
AMERICAN = {"machines.hcloud.networkZone": "us-east", "machines.hcloud.machineType": "ccx13", "machines.hcloud.fewZones": True, "pools.master.zones": ["ash"], "pools.worker.zones": ["ash"]}  # fmt: skip
ARM = {f"pools.{pool}.{key}": value for pool in ("master", "worker") for key, value in (("machineType", "cax21"), ("arch", "arm64"))}  # fmt: skip
WAYS: Mapping[str, Edits] = {
    "usual": {},
    "one master": {**ALONE, "pools.worker.count": 1},
    "no balancer": {"machines.hcloud.apiLoadBalancer": "none"},
    "balancer outside": OUTSIDE,
    "balancer outside of one master": {**OUTSIDE, **ALONE},
    "node ports": {"machines.hcloud.nodePortsFrom": ["198.51.100.0/24"]},
    "ingress": {"frontDoors.ingress": {"proxyProtocol": True}, "machines.hcloud.loadBalancerType": "lb21"},
    "etcd on machines of its own": {**OF_ETCD, "pools.master.roles": ["master"]},
    "America": AMERICAN,
    "arm64": ARM,
    "a snapshot": {"machines.hcloud.image": "123456789"},
    "controller": {"machines.hcloud.cloudController": "external", "kubelet.servingCertificates": "self-signed"},
    "filtered inside": {"machines.firewall": {"networks": ["10.20.0.0/20"], "sshFrom": ["203.0.113.0/24"], "apiFrom": ["203.0.113.0/24"]}},
    "a long name": {"cluster.name": "a-cluster-with-a-name-of-32-chars"[:32]},
}  # fmt: skip


def of_cloud(run: Run) -> list[Resource]:
    return [one for one in run.custom if providers.is_cloud(one.type)]


def servers(run: Run) -> list[Resource]:
    return [one for one in of_cloud(run) if one.type.endswith(":Server")]


def kinds(run: Run, mark: str) -> set[str]:
    """Names of the cloud's resources that a run made (+), changed (~), replaced (!) or deleted (-)."""
    named = {one.name for one in of_cloud(run)}
    return {c.name for c in run.changes if c.mark == mark and (c.name in named or mark == "-")}


@pytest.mark.parametrize("edits", WAYS.values(), ids=WAYS)
def test_every_resource_fits_its_provider_and_a_second_up_changes_nothing(
    stacks: Stacks, edits: Edits
) -> None:
    engine, run = stacks.settled(hcloud(edits))
    assert len(servers(run)) == len(planned(hcloud(edits)).nodes)
    assert_exactly(engine.up(hcloud(edits)), [])


_SERVER: dict[str, Value] = {
    "name": "a", "serverType": "cx33", "location": "fsn1", "sshKeys": ["1"], "firewallIds": [1],
    "deleteProtection": True, "rebuildProtection": True, "publicNets": [{}],
}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "inputs", "reason"),
    [
        ("server:Server", {**_SERVER, "serverType": None}, "server_type is missing"),
        ("server:Server", {**_SERVER, "firewallIds": ["1"]}, "firewallIds is"),
        ("server:Server", {**_SERVER, "firewallIds": []}, "all ports are open"),
        ("server:Server", {**_SERVER, "sshKeys": []}, "a password of root"),
        ("server:Server", {**_SERVER, "rebuildProtection": False}, "one protection without"),
        ("server:Server", {**_SERVER, "location": "fsn2"}, "location fsn2"),
        ("server:Server", {**_SERVER, "networks": [{"subnetId": "1-10.0.0.0/8"}]}, "attaches the network again"),
        ("firewall:Firewall", {"name": "a", "rules": [{"direction": "in", "protocol": "tcp", "sourceIps": ["192.0.2.0/24"]}]}, "port None of tcp"),
        ("firewall:Firewall", {"name": "a", "rules": [{"direction": "in", "protocol": "tcp", "port": "22", "sourceIps": []}]}, "has sources"),
        ("volume:Volume", {"name": "a", "size": 9, "location": "fsn1"}, "size 9"),
        ("volumeAttachment:VolumeAttachment", {"volumeId": 1, "serverId": 2}, "automount"),
        ("network:Network", {"name": "a", "ipRange": "100.64.0.0/16"}, "range 100.64.0.0/16"),
        ("loadBalancer:LoadBalancer", {"name": "a", "loadBalancerType": "lb11"}, "exactly one of location"),
        ("loadBalancerService:LoadBalancerService", {"loadBalancerId": "1", "protocol": "tcp", "listenPort": 1, "destinationPort": 1, "healthCheck": {"protocol": "https", "port": 1, "interval": 5, "timeout": 3, "retries": 2}}, "check {"),
    ],
)  # fmt: skip
def test_what_the_provider_would_refuse_is_found(
    kind: str, inputs: dict[str, Value], reason: str
) -> None:
    assert reason in "; ".join(providers.problems(f"hcloud:index/{kind}", inputs))


EDITS: list[tuple[Edits, Edits, list[str]]] = [
    ({}, {"pools.worker.count": 3},
     [*(f"+ prod-worker-3-{what}" for what in ("address", "machine", "scripts", "preflight", "node", "join")),
      "+ prod-wave-2", "~ prod-join-token", *ADDRESSES, *GATE]),
    # Machines that are there keep what they were made of.
    ({}, {"pools.worker.machineType": "cx43"}, []),
    ({}, {"machines.hcloud.image": "ubuntu-24.04"}, GATE),
    ({}, {"machines.hcloud.sshFrom": ["198.51.100.0/24"], "machines.hcloud.apiFrom": ["203.0.113.0/24"]},
     ["~ prod-machine-doors", *GATE]),
    ({}, {"machines.hcloud.nodePortsFrom": ["198.51.100.0/24"]}, ["~ prod-node-doors", *GATE]),
    ({}, {"machines.hcloud.deletionProtection": False}, [*(f"~ prod-master-{n}-machine" for n in (1, 2, 3)), *GATE]),
    ({}, {"machines.hcloud.loadBalancerType": "lb21"}, ["~ prod-api-internal", *GATE]),
    ({}, {"machines.hcloud.apiLoadBalancer": "none"},
     [*(f"- prod-api-internal{what}" for what in ("", "-network", "-6443")),
      *(f"- prod-master-{n}-balanced-internal" for n in (1, 2, 3)), *GATE]),
    ({}, {"frontDoors.ingress": {}},
     [*(f"+ prod-ingress{what}" for what in ("", "-network", "-80", "-443")),
      *(f"+ prod-worker-{n}-ingress-target" for n in (1, 2)), *GATE]),
]  # fmt: skip


@pytest.mark.parametrize(("start", "edit", "changes"), EDITS)
def test_an_edit_changes_exactly_this(
    stacks: Stacks, start: Edits, edit: Edits, changes: list[str]
) -> None:
    assert_changes(stacks, hcloud(start), hcloud({**start, **edit}), changes)


@pytest.mark.parametrize(
    ("start", "edit"),
    [
        (None, {}),
        ({}, {"pools.worker.count": 3}),
        (OFF, ALONE),
        (ALONE, {}),
        ({}, OUTSIDE),
        ({}, {"machines.hcloud.labels": {"team": "a"}}),
        ({}, {"machines.hcloud.etcdDiskGib": 40}),
        ({}, {"nodes.worker-1": {"generation": 2}}),
        (OFF, {"nodes.master-2": {"generation": 2, "zone": "hel1"}, "machines.hcloud.fewZones": True}),
        ({"frontDoors.ingress": {}}, {"frontDoors.ingress": {"proxyProtocol": True}}),
        ({"frontDoors.ingress": {}}, {"pools.worker.count": 1}),
        ({}, {"nodes.worker-2": {"state": "decommissioned"}}),
    ],
)  # fmt: skip
def test_what_is_told_is_what_is_done(stacks: Stacks, start: Edits | None, edit: Edits) -> None:
    before = None if start is None else hcloud(start)
    assert told(stacks, Pair("edit", before, hcloud({**(start or {}), **edit}))).findings() == []


def test_the_other_kind_of_load_balancer_is_there_before_the_first_goes(stacks: Stacks) -> None:
    engine, _ = stacks.settled(hcloud())
    run = engine.up(hcloud(OUTSIDE))
    assert "prod-api-external" in kinds(run, "+")
    assert "prod-api-internal" in kinds(run, "-")
    assert not kinds(run, "!")
    assert plain(engine.outputs["apiAddress"]) == "198.51.100.7"


def test_a_raised_generation_makes_one_machine_anew_and_keeps_its_disk_and_its_address(
    stacks: Stacks,
) -> None:
    engine, born = stacks.settled(hcloud(OFF))
    run = engine.up(hcloud({**OFF, "nodes.master-2.generation": 2}))
    own = {"machine", "etcd-disk-attached", "balanced-internal"}
    assert kinds(run, "!") == {f"prod-master-2-{what}" for what in own}
    assert not kinds(run, "~") | kinds(run, "+") | kinds(run, "-")
    for kept in ("prod-master-2-etcd-disk", "prod-master-2-address"):
        assert run.named(kept).id == born.named(kept).id
    # Survivors take the old one out first.
    assert "prod-retire" in Graph(run).before("prod-master-2-machine")


def test_every_machine_is_dialled_at_its_own_address_and_known_by_its_own_key(
    stacks: Stacks,
) -> None:
    _, run = stacks.settled(hcloud())
    (user_key,) = (one for one in run.custom if one.name == "prod-ssh")
    public = str(plain(user_key.outputs["publicKeyOpenssh"])).strip()
    assert run.named("prod-login").text("publicKey") == public
    keys = {}
    for server in servers(run):
        assert isinstance(server.inputs["userData"], Secret)
        made = yaml.safe_load(server.text("userData"))
        assert made["users"][0]["ssh_authorized_keys"] == [public]
        assert plain(server.inputs["sshKeys"]) == [run.named("prod-login").id]
        keys[server.name] = made["ssh_keys"]["ecdsa_public"]
    assert len(set(keys.values())) == len(keys) == 5
    for command in run.commands:
        connection = command.value("connection")
        assert isinstance(connection, dict)
        assert connection.get("proxy") is None
        addresses = {r.name: plain(r.outputs["ipAddress"]) for r in of_cloud(run) if r.type.endswith("PrimaryIp")}  # fmt: skip
        if node := re.match(r"prod-((?:master|worker)-\d)-", command.name):
            assert connection["hostKey"] == keys[f"prod-{node[1]}-machine"]
            assert connection["host"] == addresses[f"prod-{node[1]}-address"]


def test_etcd_finds_its_disk_by_the_number_of_the_volume(stacks: Stacks) -> None:
    _, run = stacks.settled(hcloud())
    for server in servers(run):
        node = server.name.removeprefix("prod-").removesuffix("-machine")
        if "-master-" not in server.name:
            assert "DISKS=''" in server.text("userData")
            assert f"prod-{node}-etcd-disk" not in {one.name for one in run.custom}
            continue
        disk = run.named(f"prod-{node}-etcd-disk")
        assert f"DISKS=/dev/disk/by-id/scsi-0HC_Volume_{disk.id}\n" in server.text("userData")
        assert disk.text("location") == server.text("location")
        attached = run.named(f"prod-{node}-etcd-disk-attached")
        assert plain(attached.inputs["volumeId"]) == int(disk.id)
        assert plain(attached.inputs["serverId"]) == int(server.id)
        assert f"prod-{node}-etcd-disk-attached" in Graph(run).before(f"prod-{node}-scripts")


@pytest.mark.parametrize("edits", WAYS.values(), ids=WAYS)
def test_who_is_let_in_from_outside_is_what_the_table_says(stacks: Stacks, edits: Edits) -> None:
    """A rule that no firewall holds would be closed; one more an open door."""
    _, run = stacks.settled(hcloud(edits))
    plan = planned(hcloud(edits))
    by_id = {one.id: one for one in of_cloud(run)}
    for node in plan.nodes:
        server = run.named(f"{plan.spec.cluster.name}-{node.name}-machine")
        walls = plain(server.inputs["firewallIds"])
        assert isinstance(walls, list)
        open_: set[str] = set()
        for wall in walls:
            rules = by_id[str(int(str(wall).partition(".")[0]))].value("rules")
            assert isinstance(rules, list)
            open_ |= {f"{r['protocol']} {r['port']} {r['sourceIps']}" for r in rules if isinstance(r, dict)}  # fmt: skip
        wanted = {
            f"{rule.protocol} {_ports(rule.ports)} {[*rule.ranges]}"
            for rule in firewall.rules(plan)
            if rule.ranges and rule.to in firewall.groups(node.roles)
        }
        assert open_ == wanted, node.name


def _ports(ports: tuple[int, int] | None) -> str:
    assert ports is not None
    return str(ports[0]) if ports[0] == ports[1] else f"{ports[0]}-{ports[1]}"


def test_etcd_machines_are_protected_and_stand_apart_in_each_location(stacks: Stacks) -> None:
    _, run = stacks.settled(hcloud({"pools.master.count": 5}))
    protected = {s.name for s in servers(run) if plain(s.inputs.get("deleteProtection")) is True}
    assert protected == {f"prod-master-{number}-machine" for number in range(1, 6)}
    for server in servers(run):
        group = server.inputs.get("placementGroupId")
        if server.name in protected:
            wanted = run.named(f"prod-etcd-apart-{server.text('location')}")
            assert plain(group) == int(wanted.id)
        else:
            assert group is None


def test_the_load_balancer_asks_the_api_server_itself_and_shows_what_it_has_to(
    stacks: Stacks,
) -> None:
    for edits, name, is_public in (({}, "internal", False), (OUTSIDE, "external", True)):
        _, run = stacks.settled(hcloud(edits))
        check = run.named(f"prod-api-{name}-6443").value("healthCheck")
        assert isinstance(check, dict)
        assert check["http"] == {"path": "/readyz", "tls": True, "statusCodes": ["200"]}
        attached = run.named(f"prod-api-{name}-network")
        assert plain(attached.inputs["enablePublicInterface"]) is is_public
        kept = [*clouds.balancer_addresses(planned(hcloud()).spec)]
        assert ([attached.text("ip")] == kept) is not is_public
        target = run.named(f"prod-master-1-balanced-{name}")
        assert plain(target.inputs["usePrivateIp"]) is True


def test_each_node_is_told_what_the_cloud_knows_it_by(stacks: Stacks) -> None:
    edits = WAYS["controller"]
    _, run = stacks.settled(hcloud(edits))
    number = run.named("prod-worker-1-machine").id
    assert f"PROVIDER_ID=hcloud://{number}\n" in run.named("prod-worker-1-node").text("stdin")
