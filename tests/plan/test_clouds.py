"""Machines on Google Cloud and AWS: every resource fits its provider, and edits change what they say."""

from __future__ import annotations

import configparser
import fnmatch
import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import pytest
import yaml

from stacks.cluster import clouds, inventory
from stacks.providers.aws import quotas
from tests.plan import clouds as providers
from tests.plan.graph import Graph
from tests.plan.recording import RunError
from tests.plan.registration import Resource, Run
from tests.plan.settled import Stacks, assert_changes, assert_exactly
from tests.plan.told_pairs import Pair, told
from tests.unit.configs import (
    aws,
    behind_tunnel,
    by_identity,
    gcp,
    hcloud,
    of_region,
    planned,
    with_store,
)
from toolchain.values import Secret, Value, plain

Config = Callable[[Mapping[str, object]], dict[str, object]]
Edits = Mapping[str, object]

# Who is in the cluster under which address: by it kubelets get certificates.
ADDRESSES = ["! prod-addon-serving-certificates-attempt", "~ prod-addon-serving-certificates"]
GATE = ["! prod-acceptance-attempt", "~ prod-nodes", "~ prod-gate"]
ZONES = ("europe-west3-a", "europe-west3-b", "europe-west3-c")
OFF = {"machines.gcp.deletionProtection": False}


def marked(mark: str, phases: str, nodes: Iterable[str]) -> list[str]:
    return [f"{mark} prod-{node}-{phase}" for node in nodes for phase in phases.split()]


def of_clouds(run: Run) -> list[Resource]:
    return [resource for resource in run.custom if providers.is_cloud(resource.type)]


def kinds(run: Run, mark: str) -> set[str]:
    """Names of the clouds' resources that a run made (+), changed (~), replaced (!) or deleted (-)."""
    return {
        change.name
        for change in run.changes
        if change.mark == mark
        and (one := change.after or change.before)
        and providers.is_cloud(one.type)
    }


# What a provider would refuse fails the run: see tests/plan/clouds.py.
EVERY_WAY: list[tuple[Config, Edits]] = [
    (gcp, {}),
    (gcp, {"machines.gcp.access": "public", "machines.gcp.nodePortsFrom": ["198.51.100.0/24"]}),
    (gcp, {"machines.gcp.apiLoadBalancer": "external", "cluster.endpoint": "api.example.com"}),
    (gcp, {"machines.gcp.apiLoadBalancer": "external", "pools.master.count": 1}),
    (gcp, {"machines.gcp.network": "mine", "machines.gcp.subnetwork": "mine"}),
    (gcp, {"machines.gcp.network": "mine", "network.plugin": "none"}),
    (gcp, {"machines.gcp.network": "mine", "machines.gcp.subnetwork": "mine", "machines.gcp.networkProject": "the-host-project", "machines.gcp.addressOffset": 200, "pools.master.addressOffset": 210, "pools.worker.addressOffset": 300}),
    (gcp, {"pools.worker.machineType": "t2a-standard-2", "pools.worker.arch": "arm64", "machines.gcp.secureBoot": False}),
    (gcp, {f"pools.{pool}.{key}": value for pool in ("master", "worker") for key, value in (("machineType", "c4a-standard-2"), ("arch", "arm64"))}),
    (gcp, {"machines.gcp.machineType": "n4-standard-2", "machines.gcp.bastionMachineType": "n4-standard-2"}),
    (gcp, {"machines.gcp.serviceAccountRoles": ["roles/compute.viewer"], "machines.gcp.labels": {"team": "a"}}),
    (gcp, {"pools.etcd": {"roles": ["etcd"], "count": 3, "zones": list(ZONES), "etcdDiskGib": 40}, "pools.master.roles": ["master"]}),
    (gcp, {"machines.gcp.cloudController": "external"}),
    (gcp, {"frontDoors.ingress": {"pools": ["worker"]}, "machines.gcp.network": "mine", "machines.gcp.subnetwork": "mine", "machines.gcp.networkProject": "the-host-project"}),
    (gcp, {"pools.worker.spot": True, "machines.gcp.access": "public"}),
    (gcp, by_identity("gcp")),
    (gcp, by_identity("gcp", prune=False, prefix="")),
    (gcp, {"cluster.name": "a-cluster-with-a-name-of-32-chars"[:32]}),
    (gcp, {"pools.master.count": 1, "pools.worker.count": 1}),
    (gcp, behind_tunnel("gcp")),
    (gcp, {**behind_tunnel("gcp"), "machines.gcp.network": "mine", "machines.gcp.subnetwork": "mine", "machines.gcp.tunnelPort": 20023}),
    (aws, {}),
    (aws, {"machines.aws.access": "public", "machines.aws.nodePortsFrom": ["198.51.100.0/24"]}),
    (aws, {"machines.aws.apiLoadBalancer": "external", "cluster.endpoint": "api.example.com"}),
    (aws, {"machines.aws.apiLoadBalancer": "external", "pools.master.count": 1}),
    (aws, {"machines.aws.diskType": "io2", "machines.aws.etcdDiskType": "io2"}),
    (aws, {"pools.worker.machineType": "m7g.large", "pools.worker.arch": "arm64"}),
    (aws, {"machines.aws.policies": ["arn:aws:iam::aws:policy/service-role/AmazonEBSCSIDriverPolicy"]}),
    (aws, {"machines.aws.cloudController": "external"}),
    (aws, {"frontDoors.ingress": {"proxyProtocol": True}, "cluster.name": "a-cluster-with-a-name-of-32-chars"[:32]}),
    (aws, {"pools.worker.spot": True, "machines.aws.access": "public"}),
    (aws, {**by_identity("aws"), "cluster.name": "a-cluster-with-a-name-of-32-chars"[:32]}),
    (aws, by_identity("aws", prune=False, prefix="")),
    (aws, {"machines.aws.image": "ami-0123456789abcdef0"}),
    (aws, {"cluster.name": "a-cluster-with-a-name-of-32-chars"[:32]}),
    (aws, {"machines.aws.vpcId": "vpc-0123456789abcdef0", "machines/aws/subnets": {
        f"eu-central-1{zone}": {"cidr": f"10.20.{number}.0/24", "id": f"subnet-0123456789abcde{number}", "publicId": f"subnet-0123456789abcdf{number}"}
        for number, zone in enumerate("abc")}}),
    (aws, {"pools.master.count": 1, "pools.worker.count": 1}),
    (aws, behind_tunnel("aws")),
    (aws, {**behind_tunnel("aws"), "machines.aws.vpcId": "vpc-0123456789abcdef0", "machines/aws/subnets": {
        f"eu-central-1{zone}": {"cidr": f"10.20.{number}.0/24", "id": f"subnet-0123456789abcde{number}"}
        for number, zone in enumerate("abc")}}),
    (aws, {**behind_tunnel("aws"), "machines.aws.apiLoadBalancer": "external", "cluster.endpoint": "api.example.com",
           "machines.aws.apiFrom": ["203.0.113.0/24"], "machines.aws.bastionImage": "ami-0123456789abcdef0"}),
]  # fmt: skip


@pytest.mark.parametrize(("config", "edits"), EVERY_WAY)
def test_every_resource_fits_its_provider_and_a_second_up_changes_nothing(
    stacks: Stacks, config: Config, edits: Edits
) -> None:
    engine, run = stacks.settled(config(edits))
    assert len(of_clouds(run)) > 20 or "vpcId" in str(edits) or "subnetwork" in str(edits)
    assert_exactly(engine.up(config(edits)), [])


WRONG: list[tuple[str, dict[str, Value], str]] = [
    ("gcp:compute/instance:Instance", {"name": "a", "zone": "z", "networkInterfaces": [{"network": "n"}]}, "machine_type is missing"),
    ("gcp:compute/network:Network", {"name": "a", "autoCreate": True}, "no input autoCreate"),
    ("gcp:compute/network:Network", {"name": "a", "mtu": "1460"}, "mtu is '1460'"),
    ("gcp:compute/network:Network", {"name": "A_b"}, "name 'A_b'"),
    ("gcp:compute/firewall:Firewall", {"name": "a", "network": "n", "direction": "INGRESS", "targetTags": ["t"], "allows": [{"protocol": "icmp", "ports": ["1"]}]}, "ICMP has no ports"),
    ("gcp:compute/firewall:Firewall", {"name": "a", "network": "n", "direction": "INGRESS", "targetTags": ["t"], "allows": [{"protocol": "tcp"}]}, "neither sourceRanges"),
    ("gcp:compute/firewall:Firewall", {"name": "a", "network": "n", "direction": "INGRESS", "allows": [{"ports": ["1"]}]}, "allows is"),
    ("gcp:serviceaccount/account:Account", {"accountId": "abc"}, "account ID abc"),
    ("aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule", {"securityGroupId": "sg", "ipProtocol": "tcp", "fromPort": 2, "toPort": 1, "cidrIpv4": "192.0.2.0/24"}, "ports 2 to 1"),
    ("aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule", {"securityGroupId": "sg", "ipProtocol": "icmp", "fromPort": -1, "toPort": -1}, "one of them: []"),
    ("aws:lb/targetGroup:TargetGroup", {"name": "x" * 33, "protocol": "TCP", "targetType": "ip"}, "name 'xxx"),
    ("aws:ebs/volume:Volume", {"availabilityZone": "a", "type": "io2", "size": 20}, "iops is needed"),
    ("aws:ebs/volume:Volume", {"availabilityZone": "a", "type": "io2", "size": 20, "iops": 3000, "throughput": 200}, "throughput is for gp3"),
    ("aws:ebs/volume:Volume", {"availabilityZone": "a", "size": 20, "kmsKeyId": "k"}, "encrypted is not true"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "inputs", "reason"), WRONG)
def test_what_a_provider_would_refuse_is_found(
    kind: str, inputs: dict[str, Value], reason: str
) -> None:
    assert reason in "; ".join(providers.problems(kind, inputs))


EDITS: list[tuple[Config, Edits, Edits, list[str]]] = [
    (gcp, {}, {"pools.worker.count": 3},
     [*marked("+", "machine scripts preflight node join", ["worker-3"]), "+ prod-wave-2", "~ prod-join-token", *ADDRESSES, *GATE]),
    (aws, {}, {"pools.worker.count": 3},
     [*marked("+", "machine scripts preflight node join", ["worker-3"]), "+ prod-wave-2", "~ prod-join-token", *ADDRESSES, *GATE]),
    (gcp, {"pools.worker.count": 3}, {"pools.worker.count": 2},
     [*marked("-", "machine scripts preflight node join", ["worker-3"]), "- prod-wave-2", *ADDRESSES, *GATE]),
    # Machines that are there keep what they were made of.
    (gcp, {}, {"pools.worker.machineType": "e2-standard-4", "pools.master.diskGib": 80}, []),
    (aws, {}, {"pools.worker.machineType": "m6i.xlarge", "pools.master.diskGib": 80}, []),
    (gcp, {}, {"machines.gcp.machineType": "e2-standard-8", "machines.gcp.image": "ubuntu-os-cloud/ubuntu-2204-lts"}, GATE),
    (aws, {}, {"machines.aws.machineType": "m6i.xlarge", "machines.aws.image": "ami-0123456789abcdef0"}, GATE),
    (gcp, {}, {"machines.gcp.sshFrom": ["198.51.100.0/24"], "machines.gcp.apiFrom": ["203.0.113.0/24"]},
     ["~ prod-ssh-bastion-let-in", *GATE]),
    (aws, {}, {"machines.aws.sshFrom": ["198.51.100.0/24"], "machines.aws.apiFrom": ["203.0.113.0/24"]},
     ["+ prod-ssh-bastion-from-198-51-100-0-24", "- prod-ssh-bastion-from-203-0-113-0-24", *GATE]),
    (gcp, {}, OFF, ["~ prod-master-1-machine", "~ prod-master-2-machine", "~ prod-master-3-machine", *GATE]),
    (gcp, {}, {"machines.gcp.apiLoadBalancer": "none"},
     ["- prod-api-health-let-in", "- prod-api-internal", "- prod-api-internal-check", "- prod-api-internal-service",
      *(f"- prod-master-{number}-balanced" for number in (1, 2, 3)), *(f"- prod-masters-{zone}" for zone in ZONES), *GATE]),
    (aws, {"machines.aws.apiLoadBalancer": "none"}, {"machines.aws.apiLoadBalancer": "internal"},
     ["+ prod-api-internal", "+ prod-api-internal-listener", "+ prod-api-internal-targets", "+ prod-balancer-doors",
      "+ prod-balancer-out", "+ prod-balancer-from-203-0-113-0-24", "+ prod-api-from-balancer",
      "+ prod-balancer-from-node", "+ prod-balancer-from-bastion",
      *(f"+ prod-master-{number}-balanced-internal" for number in (1, 2, 3)), *GATE]),
]  # fmt: skip


@pytest.mark.parametrize("edits", [{}, {"machines.aws.natGateways": "one"}, {"machines.aws.access": "public"}, behind_tunnel("aws"), {"machines.aws.apiLoadBalancer": "external", "cluster.endpoint": "api.example.com"}])  # fmt: skip
def test_as_many_elastic_ips_are_taken_as_are_counted(stacks: Stacks, edits: Edits) -> None:
    _, run = stacks.settled(aws(edits))
    plan = planned(aws(edits))
    counted = quotas.elastic_ips(plan.spec, inventory.places(plan.spec))
    assert sum(r.type == "aws:ec2/eip:Eip" for r in of_clouds(run)) == counted


@pytest.mark.parametrize(("config", "start", "edit", "changes"), EDITS)
def test_an_edit_changes_exactly_this(
    stacks: Stacks, config: Config, start: Edits, edit: Edits, changes: list[str]
) -> None:
    assert_changes(stacks, config(start), config({**start, **edit}), changes)


def test_a_further_zone_touches_no_machine_that_is_there(stacks: Stacks) -> None:
    two = {"pools.worker.zones": list(ZONES[:2]), "pools.worker.count": 3}
    three = {"pools.worker.zones": list(ZONES), "nodes.worker-3.zone": ZONES[0]}
    engine, _ = stacks.settled(gcp(two))
    run = engine.up(gcp({**two, **three, "pools.worker.count": 6}))
    assert kinds(run, "+") == {f"prod-worker-{number}-machine" for number in (4, 5, 6)}
    assert not kinds(run, "~") | kinds(run, "!") | kinds(run, "-")
    assert plain(run.named("prod-worker-6-machine").inputs["zone"]) == ZONES[2]


def test_one_master_has_no_load_balancer_and_three_have_one(stacks: Stacks) -> None:
    one = {"pools.master.count": 1, **OFF}
    engine, born = stacks.settled(gcp(one))
    assert not [r.name for r in of_clouds(born) if "balanced" in r.name or "-api-int" in r.name]
    grown = engine.up(gcp(OFF))
    masters = {
        f"prod-master-{number}-{what}" for number in (2, 3) for what in ("machine", "etcd-disk")
    }
    balancer = {
        *(f"prod-master-{number}-balanced" for number in (1, 2, 3)),
        *(f"prod-masters-{zone}" for zone in ZONES),
        *("prod-api-internal", "prod-api-internal-check", "prod-api-internal-service"),
        "prod-api-health-let-in",
    }
    assert kinds(grown, "+") == masters | balancer
    assert not kinds(grown, "~") | kinds(grown, "!") | kinds(grown, "-")
    # The API server of the first master knows the address from its first day.
    assert not [c.name for c in grown.changes if c.name.startswith("prod-pki-master-1")]
    shrunk = engine.up(gcp(one))
    assert kinds(shrunk, "-") == masters | balancer
    assert_exactly(engine.up(gcp(one)), [])


def test_the_other_kind_of_load_balancer_is_there_before_the_first_goes(stacks: Stacks) -> None:
    """Names differ, so that none has to wait for the other's end: deletes come last."""
    edit = {"cluster.endpoint": "api.example.com"}
    for config, provider in ((gcp, "gcp"), (aws, "aws")):
        engine, _ = stacks.settled(config(edit))
        run = engine.up(config({**edit, f"machines.{provider}.apiLoadBalancer": "external"}))
        assert "prod-api-external" in kinds(run, "+")
        assert "prod-api-internal" in kinds(run, "-")
        assert not kinds(run, "!")
        assert isinstance(plain(engine.outputs["apiAddress"]), str)


@pytest.mark.parametrize("kind", ["internal", "external"])
@pytest.mark.parametrize(("config", "start"), [(gcp, OFF), (aws, {})])
def test_a_load_balancer_from_the_first_master_on_keeps_address_kubeconfig_and_certificates(
    stacks: Stacks, config: Config, start: Edits, kind: str
) -> None:
    start = {**start, f"machines.{config.__name__}.apiLoadBalancer": kind}
    one, three = ({**start, "pools.master.count": count} for count in (1, 3))
    engine, _ = stacks.settled(config(one))
    at, url = engine.outputs["apiAddress"], engine.outputs["endpoint"]
    assert plain(url) == f"https://{plain(at)}:6443"
    known = _clusters(engine.outputs["kubeconfig"])
    first = known[
        "prod" if kind == "external" else "prod-balancer" + "-eu-central-1a" * (config is aws)
    ]
    assert first["server"] == plain(url)
    for edits in (three, one):
        run = engine.up(config(edits))
        assert (engine.outputs["apiAddress"], engine.outputs["endpoint"]) == (at, url)
        assert known.items() <= _clusters(engine.outputs["kubeconfig"]).items()
        balancer = {name for mark in "!-" for name in kinds(run, mark) if "-api-" in name}
        assert not balancer
        assert not [c.name for c in run.changes if c.name.startswith("prod-pki-master-1")]
    assert_exactly(engine.up(config(one)), [])


def _clusters(kubeconfig: Value) -> dict[str, dict[str, str]]:
    text = kubeconfig.value if isinstance(kubeconfig, Secret) else kubeconfig
    return {each["name"]: each["cluster"] for each in yaml.safe_load(str(plain(text)))["clusters"]}


@pytest.mark.parametrize(("config", "start"), [(gcp, OFF), (aws, {})])
def test_a_raised_generation_makes_one_machine_anew_and_keeps_its_disk(
    stacks: Stacks, config: Config, start: Edits
) -> None:
    engine, born = stacks.settled(config(start))
    edit = {**start, "nodes.master-2.generation": 2, "pools.master.diskGib": 80}
    run = engine.up(config(edit))
    assert "prod-master-2-machine" in kinds(run, "!")
    assert kinds(run, "!") <= {f"prod-master-2-{what}" for what in ("machine", "balanced", "etcd-disk-attached")}  # fmt: skip
    assert not kinds(run, "~") | kinds(run, "+") | kinds(run, "-")
    disk = "prod-master-2-etcd-disk"
    assert run.named(disk).id == born.named(disk).id
    # What it is made of now is what the config says now; those around it stay.
    assert "80" in str(plain(dict(run.named("prod-master-2-machine").inputs)))
    assert "80" not in str(plain(run.named("prod-master-1-machine").inputs.get("bootDisk"))) + str(
        plain(run.named("prod-master-1-machine").inputs.get("rootBlockDevice"))
    )
    # Survivors take the old one out first.
    assert "prod-retire" in Graph(run).before("prod-master-2-machine")


def test_a_newer_image_is_for_machines_still_to_be_made(stacks: Stacks) -> None:
    engine, _ = stacks.settled(aws())
    engine.images = {"x86_64": "ami-0cccccccccccccccc", "arm64": "ami-0dddddddddddddddd"}
    assert_exactly(engine.up(aws()), [])
    run = engine.up(aws({"pools.worker.count": 3, "nodes.worker-1.generation": 2}))
    images = {r.name: r.text("ami") for r in of_clouds(run) if r.name.startswith("prod-worker")}
    assert images == {
        "prod-worker-1-machine": "ami-0cccccccccccccccc",
        "prod-worker-2-machine": "ami-0aaaaaaaaaaaaaaaa",
        "prod-worker-3-machine": "ami-0cccccccccccccccc",
    }


def machines_of(run: Run) -> list[Resource]:
    return [r for r in of_clouds(run) if r.type.endswith(":Instance")]


def mapped(resource: Resource, key: str) -> dict[str, Value]:
    """An input that is a mapping; empty where it is not given."""
    found = resource.value(key)
    return found if isinstance(found, dict) else {}


def texts(resource: Resource, key: str) -> list[str]:
    """An input that is a list of texts."""
    found = resource.value(key)
    return [str(one) for one in found] if isinstance(found, list) else []


def user_data(machine: Resource) -> str:
    metadata = plain(machine.inputs.get("metadata"))
    return str(metadata["user-data"]) if isinstance(metadata, dict) else machine.text("userData")


@pytest.mark.parametrize("config", [gcp, aws])
def test_the_first_connection_is_pinned_and_goes_through_the_bastion(
    stacks: Stacks, config: Config
) -> None:
    _, run = stacks.settled(config({}))
    by_name = {machine.name: yaml.safe_load(user_data(machine)) for machine in machines_of(run)}
    bastion = by_name["prod-bastion"]["ssh_keys"]["ecdsa_public"]
    assert len({one["ssh_keys"]["ecdsa_public"] for one in by_name.values()}) == len(by_name) == 6
    for command in run.commands:
        connection = command.value("connection")
        assert isinstance(connection, dict)
        jump = connection["proxy"]
        assert isinstance(jump, dict)
        found = [
            name
            for name, one in by_name.items()
            if one["ssh_keys"]["ecdsa_public"] == connection["hostKey"]
        ]
        assert len(found) == 1, command.name
        if node := re.match(r"prod-((?:master|worker)-\d)-", command.name):
            assert found == [f"prod-{node[1]}-machine"]
        assert (jump["hostKey"], jump["user"], connection["user"]) == (bastion, "ops", "ops")
        assert str(jump["host"]).startswith("198.18."), "a public address"
        assert str(connection["host"]).startswith("10.20.")


@pytest.mark.parametrize("config", [gcp, aws])
def test_user_data_is_secret_short_and_opens_to_the_stacks_key_alone(
    stacks: Stacks, config: Config
) -> None:
    _, run = stacks.settled(config({}))
    (user_key,) = (r for r in run.custom if r.name == "prod-ssh")
    for machine in machines_of(run):
        text = user_data(machine)
        holder = machine.inputs.get("metadata") or machine.inputs.get("userData")
        hidden = holder.get("user-data") if isinstance(holder, dict) else holder
        assert isinstance(hidden, Secret), machine.name
        assert len(text.encode()) < 8192
        made = yaml.safe_load(text)
        (user,) = made["users"]
        assert user["ssh_authorized_keys"] == [str(plain(user_key.outputs["publicKeyOpenssh"])).strip()]  # fmt: skip
        has_disk = "DISKS=''" not in text
        assert has_disk == ("-master-" in machine.name)


def test_googles_agent_leaves_the_host_keys_that_were_handed_over(stacks: Stacks) -> None:
    """By itself it makes others at the first boot, and no pinned connection would ever come."""
    _, run = stacks.settled(gcp())
    machines = machines_of(run)
    assert len(machines) == 6
    for machine in machines:
        files = {one["path"]: one["content"] for one in yaml.safe_load(user_data(machine))["write_files"]}  # fmt: skip
        said = configparser.ConfigParser()
        said.read_string(files["/etc/default/instance_configs.cfg"])
        assert said.getboolean("InstanceSetup", "set_host_keys") is False, machine.name


@pytest.mark.parametrize("config", [gcp, aws])
def test_machines_wait_for_their_way_out_and_for_all_doors(stacks: Stacks, config: Config) -> None:
    _, run = stacks.settled(config({}))
    graph = Graph(run)
    ground = {
        r.name
        for r in of_clouds(run)
        if re.search(
            r":(Firewall|SecurityGroup\w+Rule|RouterNat|Route|RouteTableAssociation)$", r.type
        )
        and "balancer" not in r.name
    } | {"prod-bastion"}
    for node in ("master-1", "worker-2"):
        assert ground <= graph.before(f"prod-{node}-machine")
        assert f"prod-{node}-machine" in graph.before(f"prod-{node}-scripts")
    if config is aws:
        assert "prod-master-1-etcd-disk-attached" in graph.before("prod-master-1-scripts")


@pytest.mark.parametrize("config", [gcp, aws])
def test_a_worker_has_five_resources_and_takes_what_was_on_it_along(
    stacks: Stacks, config: Config
) -> None:
    _, run = stacks.settled(config({}))
    own = [r for r in run.custom if r.name.startswith("prod-worker-1-")]
    assert len(own) == 5
    by_urn = {r.urn: r.name for r in run.custom}
    left = [r for r in run.custom if re.match(r"prod-(master|worker)-\d-", r.name) and "connection" in r.inputs]  # fmt: skip
    for one in left:
        node = re.match(r"prod-((?:master|worker)-\d)-", one.name)
        assert node
        assert by_urn[one.deleted_with] == f"prod-{node[1]}-machine"


def test_etcd_machines_are_protected_and_workers_are_not(stacks: Stacks) -> None:
    for config, key in ((gcp, "deletionProtection"), (aws, "disableApiTermination")):
        _, run = stacks.settled(config({}))
        protected = {m.name for m in machines_of(run) if plain(m.inputs.get(key)) is True}
        assert protected == {f"prod-master-{number}-machine" for number in (1, 2, 3)}


def test_the_health_check_asks_the_api_server_itself(stacks: Stacks) -> None:
    _, run = stacks.settled(gcp())
    check = run.named("prod-api-internal-check").value("httpsHealthCheck")
    assert check == {"port": 6443, "requestPath": "/readyz"}
    _, run = stacks.settled(aws())
    check = run.named("prod-api-internal-targets").value("healthCheck")
    assert isinstance(check, dict)
    assert (check["protocol"], check["path"], check["port"]) == ("HTTPS", "/readyz", "6443")
    mappings = run.named("prod-api-internal").value("subnetMappings")
    assert isinstance(mappings, list)
    assert [m["privateIpv4Address"] for m in mappings if isinstance(m, dict)] == list(
        clouds.balancer_addresses(planned(aws()).spec)
    )


@pytest.mark.parametrize("config", [gcp, aws])
def test_an_account_of_their_own_may_do_nothing_that_nobody_said(
    stacks: Stacks, config: Config
) -> None:
    _, run = stacks.settled(config({}))
    grants = [r.type for r in of_clouds(run) if re.search("iam|IAM|Policy", r.type)]
    assert set(grants) <= {"aws:iam/role:Role", "aws:iam/instanceProfile:InstanceProfile"}
    for machine in machines_of(run):
        has_one = machine.inputs.get("serviceAccount") or machine.inputs.get("iamInstanceProfile")
        assert bool(has_one) == (machine.name != "prod-bastion"), machine.name


@pytest.mark.parametrize(
    ("config", "grant"),
    [
        (gcp, {"machines.gcp.serviceAccountRoles": ["roles/compute.admin"]}),
        (aws, {"machines.aws.policies": ["arn:aws:iam::aws:policy/AdministratorAccess"]}),
    ],
)
def test_what_nodes_may_do_in_the_cloud_no_machine_with_an_open_port_may(
    stacks: Stacks, config: Config, grant: Edits
) -> None:
    for way in ({}, behind_tunnel(config.__name__)):
        _, run = stacks.settled(config({**grant, **way}))
        who = {
            m.name: str(plain(m.inputs.get("serviceAccount") or m.inputs.get("iamInstanceProfile")))
            for m in machines_of(run)
        }
        nodes = {one for name, one in who.items() if re.search("master|worker", name)}
        (bastion,) = (one for name, one in who.items() if re.search("bastion|tunnel", name))
        assert len(nodes) == 1
        assert bastion not in nodes


ARN = "arn:aws:s3:::acme-etcd"


@pytest.mark.parametrize("prune", [True, False])
def test_on_aws_machines_of_etcd_alone_send_snapshots_to_their_folder_and_read_none(
    stacks: Stacks, *, prune: bool
) -> None:
    _, run = stacks.settled(aws(by_identity("aws", prune=prune)))
    who = {
        m.name: m.text("iamInstanceProfile") for m in machines_of(run) if m.name != "prod-bastion"
    }
    assert {one for name, one in who.items() if "master" in name} == {"prod-etcd-eu-central-1"}
    assert {one for name, one in who.items() if "worker" in name} == {"prod-nodes-eu-central-1"}
    policy = run.named("prod-etcd-snapshots")
    assert policy.text("role") == run.named("prod-etcd-role").text("name")
    send, *look = json.loads(policy.text("policy"))["Statement"]
    folder = "clusters/prod-????????????"
    assert send["Resource"] == f"{ARN}/{folder}/*"
    assert send["Action"] == ["s3:PutObject", *(["s3:DeleteObject"] if prune else [])]
    assert [(one["Action"], one["Resource"], one["Condition"]) for one in look] == [
        ("s3:ListBucket", ARN, {"StringLike": {"s3:prefix": f"{folder}/*"}})
    ][: int(prune)]
    # As the scripts say it.
    own = f"clusters/prod-{'0123456789ab'}/"
    assert fnmatch.fnmatchcase(own, f"{folder}/*")
    assert not fnmatch.fnmatchcase("clusters/prod-2-0123456789ab/", f"{folder}/*")


def test_at_google_the_machines_account_has_its_folder_of_the_bucket(stacks: Stacks) -> None:
    engine, run = stacks.settled(gcp(by_identity("gcp")))
    grant = run.named("prod-account-snapshots")
    assert (grant.text("bucket"), grant.text("role")) == ("acme-etcd", "roles/storage.objectUser")
    assert grant.text("member").startswith("serviceAccount:prod-nodes@")
    condition = grant.value("condition")
    assert isinstance(condition, dict)
    assert condition["expression"] == (
        'resource.name.startsWith("projects/_/buckets/acme-etcd/objects/clusters/prod-") || '
        'api.getAttribute("storage.googleapis.com/objectListPrefix", "").startsWith("clusters/prod-")'
    )
    again = engine.up(gcp(by_identity("gcp", prune=False)))
    grant = again.named("prod-account-snapshots")
    assert grant.text("role") == "roles/storage.objectCreator"
    assert "objectListPrefix" not in str(plain(grant.value("condition")))


@pytest.mark.parametrize("config", [gcp, aws])
def test_snapshots_by_identity_change_machines_in_place_and_leave_no_key(
    stacks: Stacks, config: Config
) -> None:
    """Who was there: the key's file goes with the phase of each member; nothing restarts or is replaced."""
    engine, _ = stacks.settled(config(with_store()))
    run = engine.up(config(by_identity(config.__name__)))
    assert [name for name in kinds(run, "!") if "attempt" not in name] == []
    masters = {f"prod-master-{number}-machine" for number in (1, 2, 3)}
    assert kinds(run, "~") == (masters if config is aws else set())
    keys = [change.name for change in run.changes if change.name.endswith("-etcd-keys")]
    assert len(keys) == 3
    assert "store.key" not in "".join(
        str(plain(run.named(name).inputs.get("stdin"))) for name in keys
    )


def test_sdks_of_clouds_are_imported_by_their_own_stacks_alone(stacks: Stacks) -> None:
    """They are big: a lab must not wait for them."""
    import subprocess
    import sys

    code = (
        "import sys, runpy\n"
        "from components import machines, cluster, outputs\n"
        "from components.machines import lab, adopted\n"
        "print([name for name in sys.modules if name.startswith(('pulumi_gcp', 'pulumi_aws', 'pulumi_hcloud'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize(("config", "cloud"), [(gcp, "gcp"), (aws, "aws"), (hcloud, "hcloud")])
def test_a_missing_sdk_is_named_before_anything_is_registered(
    stacks: Stacks, monkeypatch: pytest.MonkeyPatch, config: Config, cloud: str
) -> None:
    for name in [name for name in sys.modules if name.startswith(f"components.machines.{cloud}")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, f"pulumi_{cloud}", None)
    engine = stacks.new(config({}))
    with pytest.raises(
        RunError, match=f"provider {cloud} needs the package pulumi-{cloud}, which is not"
    ):
        engine.up(config({}))
    assert engine.resources == {}


@pytest.mark.parametrize(
    ("config", "path", "known"),
    [
        (gcp, "machines.gcp.cloudController", "gce://my-project/europe-west3-a/prod-{}"),
        (aws, "machines.aws.cloudController", "aws:///eu-central-1a/"),
    ],
)
def test_each_machine_is_told_what_the_cloud_knows_it_by_and_a_pool_still_shares_its_hash(
    stacks: Stacks, config: Config, path: str, known: str
) -> None:
    _, run = stacks.settled(config({path: "external"}))
    for node in ("master-1", "worker-1"):
        phases = ("node", "master") if node == "master-1" else ("node",)
        for phase in phases:
            stdin = run.named(f"prod-{node}-{phase}").text("stdin")
            assert f"PROVIDER_ID={known.format(node)}" in stdin
            if config is aws:
                number = run.named(f"prod-{node}-machine").id
                assert f"PROVIDER_ID={known}{number}\n" in stdin
    lines = run.named("prod-nodes").text("stdin").partition("WANTED='")[2].partition("'")[0]
    assert [line.split()[0] for line in lines.splitlines()] == ["master"] * 3 + ["worker"]
    assert "CLOUD_CONTROLLER=external" in run.named("prod-gate").text("stdin")
    _, without = stacks.settled(config({}))
    assert not [one for one in without.commands if "PROVIDER_ID" in one.text("stdin")]
    assert {one.name for one in without.custom} == {one.name for one in run.custom}


@pytest.mark.parametrize(
    ("config", "path"),
    [(gcp, "machines.gcp.cloudController"), (aws, "machines.aws.cloudController")],
)
def test_a_controller_manager_changes_kubelets_and_no_machine(
    stacks: Stacks, config: Config, path: str
) -> None:
    engine, _ = stacks.settled(config({}))
    run = engine.up(config({path: "external"}))
    assert not [change for change in run.changes if change.mark in "+-"]
    assert not kinds(run, "!")
    # Of what is in the cloud only tags, on AWS.
    differing = {path for change in run.changes if change.name in kinds(run, "~") for path in change.paths}  # fmt: skip
    assert {path.partition(".")[0].partition("[")[0] for path in differing} == ({"tags"} if config is aws else set())  # fmt: skip
    changed = {change.name for change in run.changes}
    nodes = {f"prod-{node}-node" for node in ("master-1", "master-3", "worker-1", "worker-2")}
    assert nodes | {"prod-master-1-master", "prod-gate"} <= changed
    assert ("prod-addon-serving-certificates" in changed) == (config is aws)
    assert_exactly(engine.up(config({path: "external"})), [])


@pytest.mark.parametrize(
    ("region", "partition"),
    [("eu-central-1", "aws"), ("cn-north-1", "aws-cn"), ("us-gov-west-1", "aws-us-gov")],
)
def test_roles_are_of_one_region_and_policies_of_its_partition(
    stacks: Stacks, region: str, partition: str
) -> None:
    """Names of roles are of the whole account: a cluster of that name in another region has its own."""
    images = {"machines.aws.image": "self/mine", "machines.aws.bastionImage": "self/mine"}
    _, run = stacks.settled(aws({**of_region(region), **behind_tunnel("aws"), **images}))
    account = [r for r in of_clouds(run) if r.type.startswith("aws:iam/")]
    named = [r.text("name") for r in account if "name" in r.inputs]
    assert len(named) == 4
    assert [name for name in named if not name.endswith(f"-{region}")] == []
    assert "arn:aws:" not in str([plain(dict(r.inputs)) for r in account]) or partition == "aws"
    (policy,) = (r.text("policyArn") for r in account if "policyArn" in r.inputs)
    assert policy.startswith(f"arn:{partition}:iam::aws:policy/")


def test_credentials_of_another_account_or_project_make_nothing(stacks: Stacks) -> None:
    """The provider itself compares, at its first call: every resource and every question goes by it."""
    account = "123456789012"
    _, run = stacks.settled(aws({"machines.aws.account": account}))
    (provider,) = (r for r in run.custom if r.type == "pulumi:providers:aws")
    assert account in str(plain(provider.inputs["allowedAccountIds"]))
    _, run = stacks.settled(gcp())
    (google,) = (r for r in run.custom if r.type == "pulumi:providers:gcp")
    assert plain(google.inputs["project"]) == "my-project"


def test_a_controller_manager_on_aws_finds_its_cluster_and_one_group_of_each_machine(
    stacks: Stacks,
) -> None:
    """Without the tag on its machine it ends; with two tagged groups, or none, it makes no load balancer."""
    edits = {"machines.aws.cloudController": "external"}
    found = told(stacks, Pair("controller", aws(), aws(edits)))
    assert found.findings() == []
    tag = "kubernetes.io/cluster/prod"
    tags = {r.name: mapped(r, "tags") for r in of_clouds(found.run)}
    ids = {r.id: r.name for r in of_clouds(found.run)}
    nodes = [m for m in machines_of(found.run) if m.name != "prod-bastion"]
    assert len(nodes) == 5
    for machine in nodes:
        assert tags[machine.name][tag] == "owned"
        groups = [ids[one] for one in texts(machine, "vpcSecurityGroupIds")]
        assert [one for one in groups if tag in tags[one]] == ["prod-node-doors"]
    subnets = {r.name: tags[r.name] for r in of_clouds(found.run) if r.type.endswith(":Subnet")}
    assert len(subnets) == 6
    for name, own in subnets.items():
        role = "elb" if "-public-" in name else "internal-elb"
        assert (own[tag], own[f"kubernetes.io/role/{role}"]) == ("owned", "1")
    assert tag not in tags["prod-bastion"]
    _, without = stacks.settled(aws())
    assert "kubernetes.io" not in str([plain(dict(r.inputs)) for r in of_clouds(without)])


@pytest.mark.parametrize("config", [gcp, aws])
@pytest.mark.parametrize("may", [False, True])
def test_pods_reach_the_metadata_service_where_the_config_says_so_and_nowhere_else(
    stacks: Stacks,
    config: Config,
    may: bool,  # noqa: FBT001 (pytest gives it by name)
) -> None:
    """A driver of disks has no credentials without it: two locks, the hops of a token and a rule on the machine."""
    _, run = stacks.settled(config({f"machines.{config.__name__}.podMetadata": may}))
    for machine in machines_of(run):
        opened = may and machine.name != "prod-bastion"
        assert f"POD_METADATA={'1' if opened else ''}\n" in user_data(machine), machine.name
        options = mapped(machine, "metadataOptions")
        assert options.get("httpPutResponseHopLimit") == (None if config is gcp else 2 if opened else 1)  # fmt: skip


def test_a_network_of_another_project_is_used_by_its_address_and_opened_there(
    stacks: Stacks,
) -> None:
    shared = {"machines.gcp.network": "mine", "machines.gcp.subnetwork": "part", "machines.gcp.networkProject": "the-host-project"}  # fmt: skip
    _, run = stacks.settled(gcp(shared))
    where = "projects/the-host-project"
    text = {r.name: str(plain(dict(r.inputs))) for r in of_clouds(run)}
    assert not [r for r in of_clouds(run) if r.type.endswith((":Network", ":Subnetwork", ":Router"))]  # fmt: skip
    groups = [r for r in of_clouds(run) if r.type.endswith((":InstanceGroup", ":Firewall"))]
    assert len(groups) > 10
    for one in groups:
        assert one.text("network") == f"{where}/global/networks/mine"
        assert (one.text("project") == "the-host-project") == one.type.endswith(":Firewall")
    for machine in machines_of(run):
        assert f"{where}/regions/europe-west3/subnetworks/part" in text[machine.name]
    assert f"{where}/regions/europe-west3/subnetworks/part" in text["prod-api-internal"]


@pytest.mark.parametrize("config", [gcp, aws])
@pytest.mark.parametrize("anew", [{}, {"nodes.master-2.generation": 2}])
def test_a_bigger_disk_of_etcd_grows_where_it_is_and_its_file_system_with_it(
    stacks: Stacks, config: Config, anew: Edits
) -> None:
    path = f"machines.{config.__name__}"
    start = {f"{path}.deletionProtection": False}
    edit = {**start, f"{path}.etcdDiskGib": 40, **anew}
    found = told(stacks, Pair("disk", config(start), config(edit)))
    assert found.findings() == []
    disks = {f"prod-master-{number}-etcd-disk" for number in (1, 2, 3)}
    assert disks <= kinds(found.run, "~")
    assert not disks & kinds(found.run, "!")
    graph = Graph(found.run)
    for number in (1, 2, 3):
        disk = found.run.named(f"prod-master-{number}-etcd-disk")
        assert plain(disk.inputs["size"]) == 40
        assert "DISK_GIB=40\n" in found.run.named(f"prod-master-{number}-node").text("stdin")
        assert disk.name in graph.before(f"prod-master-{number}-node")


@pytest.mark.parametrize("config", [gcp, aws])
def test_what_nodes_let_in_from_nodes_reaches_the_cloud_and_is_told(
    stacks: Stacks, config: Config
) -> None:
    rules = [{"protocol": "tcp", "ports": 10250}, {"protocol": "ipip"}, {"protocol": "all"}]
    edit = {f"machines.{config.__name__}.nodeRules": rules}
    found = told(stacks, Pair("rules", config({}), config(edit)))
    assert found.findings() == []
    end = "-let-in" if config is gcp else "-from-node"
    assert kinds(found.run, "+") == {f"prod-nodes-{name}{end}" for name in ("tcp-10250", "ipip", "all")}  # fmt: skip
    assert not kinds(found.run, "-") | kinds(found.run, "!") | kinds(found.run, "~")


def test_a_pod_network_of_ones_own_meets_no_closed_door_between_nodes_and_may_route(
    stacks: Stacks,
) -> None:
    for config, key, value in ((gcp, "canIpForward", True), (aws, "sourceDestCheck", False)):
        edits = {"network.plugin": "none", f"machines.{config.__name__}.podRoutes": True}
        _, run = stacks.settled(config(edits))
        assert [r.name for r in of_clouds(run) if r.name.startswith("prod-nodes-all-")]
        for machine in machines_of(run):
            said = None if machine.name == "prod-bastion" else value
            assert plain(machine.inputs.get(key)) is said, machine.name
        _, usual = stacks.settled(config({}))
        assert not [m for m in machines_of(usual) if key in m.inputs]


def test_a_role_is_named_for_whatever_a_stack_makes_at_google(stacks: Stacks) -> None:
    page = (Path(__file__).parents[2] / "docs/install/cloud-permissions.md").read_text()
    zone = {"cluster.endpoint": "api.k8s.test", "frontDoors": {"dns": "managed", "zone": {"domain": "k8s.test", "private": True}}}  # fmt: skip
    roles = {"machines.gcp.serviceAccountRoles": ["roles/viewer"], **by_identity("gcp")}
    _, run = stacks.settled(gcp({**zone, **roles}))
    made = {r.type.partition("/")[0] for r in of_clouds(run) if r.type.startswith("gcp:")}
    assert len(made) == 5
    assert [one for one in made if f"`{one}`" not in page] == []
