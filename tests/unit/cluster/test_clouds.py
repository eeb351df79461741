"""Machines in a cloud: what a config means, and everything that is wrong with one, at once."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
import yaml

from stacks.cluster import cloud_machines, clouds, firewall, inventory
from stacks.cluster.certificates import api_names
from stacks.cluster.plan import Plan
from stacks.edits import memory, transition
from stacks.explain import changes
from stacks.load import load
from stacks.load import planned as plan_of
from stacks.phases.effects import CONNECTION
from stacks.phases.master import of_master
from stacks.phases.node import of_node
from stacks.providers.aws import quotas
from stacks.providers.gcp import disks
from stacks.providers.registry import CLOUDS
from stacks.render import approver, kubelet
from tests.unit.cloud_shapes import DISK_KEYS, ISSUER
from tests.unit.configs import (
    GONE,
    adopted,
    aws,
    behind_tunnel,
    gcp,
    lab,
    of_region,
    planned,
    problems,
)

Config = Callable[[Mapping[str, object] | None], dict[str, object]]
A, B, C = (f"europe-west3-{zone}" for zone in "abc")


def addresses(plan: Plan) -> dict[str, tuple[str, str | None]]:
    return {node.name: (node.address, node.zone) for node in plan.nodes}


def test_addresses_at_google_are_of_the_one_subnet_of_the_region() -> None:
    assert addresses(planned(gcp())) == {
        "master-1": ("10.20.0.11", A),
        "master-2": ("10.20.0.12", B),
        "master-3": ("10.20.0.13", C),
        "worker-1": ("10.20.0.101", A),
        "worker-2": ("10.20.0.102", B),
    }


def test_addresses_on_aws_are_of_the_subnet_of_each_zone() -> None:
    assert addresses(planned(aws())) == {
        "master-1": ("10.20.0.11", "eu-central-1a"),
        "master-2": ("10.20.16.12", "eu-central-1b"),
        "master-3": ("10.20.32.13", "eu-central-1c"),
        "worker-1": ("10.20.0.101", "eu-central-1a"),
        "worker-2": ("10.20.16.102", "eu-central-1b"),
    }


@pytest.mark.parametrize(("config", "address"), [(gcp, "10.20.0.5"), (aws, "10.20.0.5")])
def test_two_masters_or_more_have_a_load_balancer_and_it_is_the_endpoint(
    config: type, address: str
) -> None:
    several, one = planned(config()), planned(config({"pools.master.count": 1}))
    assert (several.balancer, several.endpoint) == ("internal", f"{address}:6443")
    assert (one.balancer, one.endpoint) == ("none", "10.20.0.11:6443")
    assert planned(config({"machines/" + several.spec.machines.provider + "/apiLoadBalancer": "none"})).balancer == "none"  # fmt: skip


@pytest.mark.parametrize("config", [gcp, aws])
@pytest.mark.parametrize("masters", [1, 3])
def test_an_external_load_balancer_needs_no_name_and_its_address_stands_for_it(
    config: type, masters: int
) -> None:
    edits = {f"machines.{config.__name__}.apiLoadBalancer": "external"}
    plan = planned(config({**edits, "pools.master.count": masters}))
    assert (plan.balancer, plan.endpoint) == ("external", "apiAddress:6443")
    assert not [name for name in api_names(plan, plan.masters[0]) if "apiAddress" in name]
    named = planned(config({**edits, "cluster.endpoint": "api.example.com"}))
    assert named.endpoint == "api.example.com:6443"


@pytest.mark.parametrize("config", [gcp, aws])
def test_what_becomes_of_the_address_with_more_masters_and_fewer_is_told_where_nothing_is_said(
    config: type,
) -> None:
    path = f"machines.{config.__name__}.apiLoadBalancer"
    one, three = ({"pools.master.count": count} for count in (1, 3))
    said = transition.check(None, planned(config(one))).warnings
    assert [text for at, text in said if at == path and "addresses of master-1 alone" in text]
    for kind in ("none", "internal", "external"):
        chosen = planned(config({**one, path: kind}))
        assert path not in dict(transition.check(None, chosen).warnings)
    off = {"machines.gcp.deletionProtection": False} if config is gcp else {}
    before = memory.read(memory.of(planned(config({**three, **off}))))
    said = transition.check(before, planned(config(one))).warnings
    assert [text for at, text in said if at == path and "write internal, and both stay" in text]
    kept = transition.check(before, planned(config({**one, path: "internal"})))
    assert path not in dict(kept.warnings)


def test_certificates_hold_the_balancers_addresses_whether_there_is_one_or_not() -> None:
    for count in (1, 3):
        plan = planned(aws({"pools.master.count": count}))
        names = api_names(plan, plan.node("master-1"))
        assert {"10.20.0.5", "10.20.16.5", "10.20.32.5"} <= set(names)


def lines(plan: Plan) -> set[str]:
    return {
        f"{rule.to} {rule.protocol} {rule.ports} <- {'+'.join((*rule.groups, *rule.ranges))}"
        for rule in firewall.rules(plan)
    }


HEALTH_CHECKS = (
    "master tcp (6443, 6443) <- 130.211.0.0/22+35.191.0.0/16"  # of Google's load balancer
)


def test_who_may_reach_whom() -> None:
    """The whole table: a line more is an open door."""
    assert lines(planned(gcp())) == {
        HEALTH_CHECKS,
        "etcd tcp (2379, 2380) <- etcd+master",
        "master tcp (6443, 6443) <- node",
        "master tcp (6443, 6443) <- bastion",
        "master tcp (6443, 6443) <- 203.0.113.0/24",
        "node tcp (10250, 10250) <- master",
        "node tcp (30000, 32767) <- node",
        "node udp (30000, 32767) <- node",
        "node udp (8472, 8472) <- node",
        "machine icmp None <- machine",
        "control tcp (22, 22) <- machine",
        "machine tcp (22, 22) <- bastion",
        "bastion tcp (22, 22) <- 203.0.113.0/24",
    }


def test_rules_follow_the_config() -> None:
    found = lines(
        planned(
            gcp(
                {
                    "machines.gcp.access": "public",
                    "machines.gcp.apiFrom": ["198.51.100.0/24"],
                    "machines.gcp.nodePortsFrom": ["198.51.100.0/25"],
                    "controlPlane.apiServerArgs": {"service-node-port-range": "31000-31999"},
                    "network.plugin": "none",
                }
            )
        )
    )
    assert "machine tcp (22, 22) <- 203.0.113.0/24" in found
    assert not [line for line in found if "bastion" in line or "8472" in line]
    assert "master tcp (6443, 6443) <- 198.51.100.0/24" in found
    assert "node tcp (31000, 31999) <- 198.51.100.0/25" in found
    assert "node udp (31000, 31999) <- node" in found
    # Which ports the user's own pod network takes nobody here knows.
    assert "node all None <- node" in found
    assert "node all None <- node" not in lines(planned(gcp()))


def test_rules_between_nodes_are_added_by_the_config() -> None:
    """For what people run on every cluster: metrics-server, exporters, a service mesh."""
    said = [{"protocol": "tcp", "ports": 10250}, {"protocol": "tcp", "ports": "9100-9110"}, {"protocol": "udp"}, {"protocol": "ipip"}]  # fmt: skip
    for config in (gcp, aws):
        before = lines(planned(config()))
        now = lines(planned(config({f"machines.{config.__name__}.nodeRules": said})))
        assert now - before == {
            "node tcp (10250, 10250) <- node",
            "node tcp (9100, 9110) <- node",
            "node udp (1, 65535) <- node",
            "node ipip None <- node",
        }
        assert before <= now


@pytest.mark.parametrize(
    ("rules", "path", "text"),
    [
        ([{"protocol": "sctp"}], "[0].protocol", "is not one of"),
        ([{"protocol": "all", "ports": 1}], "[0].ports", "all has none"),
        ([{"protocol": "tcp", "ports": "9-1"}], "[0].ports", "is not a port"),
        ([{"protocol": "tcp", "ports": 70000}], "[0].ports", "is not a port"),
        ([{"protocol": "esp"}, {"protocol": "esp"}], "[1]", "is there twice"),
    ],
)
def test_a_bad_rule_between_nodes_is_refused(rules: list[object], path: str, text: str) -> None:
    assert_problems(
        problems(gcp({"machines.gcp.nodeRules": rules})), {f"machines.gcp.nodeRules{path}": text}
    )


@pytest.mark.parametrize("listed", ["sshFrom", "apiFrom", "nodePortsFrom"])
def test_a_range_that_becomes_a_resource_stands_once(listed: str) -> None:
    one = "192.0.2.0/24"
    for where, config in (("aws", aws), ("gcp", gcp)):
        path = f"machines.{where}.{listed}"
        assert_problems(
            problems(config({path: [one, one]})),
            {f"{path}[1]": f"{one} is there twice; leave one out"},
        )


def test_behind_a_tunnel_nobody_outside_is_let_in_but_the_clouds_own() -> None:
    inside = {line for line in lines(planned(gcp())) if "203.0.113.0/24" not in line}
    iap = "bastion tcp (22, 22) <- 35.235.240.0/20"
    assert lines(planned(gcp(behind_tunnel("gcp")))) == inside | {iap}
    # The agent on the bastion dials out, and the load balancer has a group of its own.
    inside -= {HEALTH_CHECKS}
    assert lines(planned(aws(behind_tunnel("aws")))) == inside
    clients = {"machines.aws.apiFrom": ["198.51.100.0/24"]}
    found = lines(planned(aws({**behind_tunnel("aws"), **clients})))
    assert found == inside | {"master tcp (6443, 6443) <- 198.51.100.0/24"}


def test_the_bastion_of_a_tunnel_has_an_address_of_its_own() -> None:
    """Beside the other bastion, the load balancer, and what the provider takes of a network."""
    kinds = ((gcp, "gcp", "10.20.0.4", "10.20.0.3"), (aws, "aws", None, "10.20.0.4"))
    for config, provider, bastion, tunnel in kinds:
        with_one, with_other = planned(config()), planned(config(behind_tunnel(provider)))
        assert cloud_machines.bastion_address(with_one) == bastion
        assert cloud_machines.bastion_address(with_other) == tunnel
        assert tunnel not in clouds.balancer_addresses(with_other.spec)
        assert clouds.way_in(with_one.spec) == "bastion"
        assert clouds.way_in(with_other.spec) == "127.0.0.1:20022"
    port = {**behind_tunnel("gcp"), "machines.gcp.tunnelPort": 20023}
    assert clouds.way_in(planned(gcp(port)).spec) == "127.0.0.1:20023"


def test_nodes_reach_etcd_where_the_config_gives_them_a_door_to_it() -> None:
    line = "etcd tcp (2379, 2379) <- node"
    assert line in lines(planned(gcp({"frontDoors.etcd": {"pools": ["worker"]}})))
    assert line not in lines(planned(gcp()))


def test_etcd_is_reached_by_masters_and_members_alone() -> None:
    separate = gcp(
        {
            "pools.etcd": {"roles": ["etcd"], "count": 3, "zones": [A, B, C]},
            "pools.master.roles": ["master"],
        }
    )
    for config in (gcp(), separate):
        for rule in firewall.rules(planned(config)):
            if rule.ports and not {2379, 2380}.isdisjoint(range(rule.ports[0], rule.ports[1] + 1)):
                assert (rule.groups, rule.ranges) == (("etcd", "master"), ())
    assert firewall.groups(("worker",)) == ("machine", "node")
    assert firewall.groups(("etcd",)) == ("machine", "control", "etcd")
    assert firewall.groups(("etcd", "master")) == ("machine", "control", "etcd", "master", "node")


@pytest.mark.parametrize(
    ("name", "arch"),
    [
        ("e2-standard-2", "amd64"), ("n2d-standard-4", "amd64"), ("c4-standard-8", "amd64"),
        ("t2a-standard-4", "arm64"), ("c4a-standard-8", "arm64"), ("n4a-standard-2", "arm64"),
        ("m6i.large", "amd64"), ("g5.xlarge", "amd64"), ("c7a.large", "amd64"), ("t3.micro", "amd64"),
        ("m7g.large", "arm64"), ("t4g.small", "arm64"), ("c7gn.xlarge", "arm64"),
        ("r6gd.2xlarge", "arm64"), ("im4gn.large", "arm64"), ("g5g.xlarge", "arm64"),
        ("a1.large", "arm64"),
    ],
)  # fmt: skip
def test_architecture_is_known_by_the_machine_type(name: str, arch: str) -> None:
    cloud = CLOUDS["aws" if "." in name else "gcp"]
    assert bool(cloud.ARM.fullmatch(name)) == (arch == "arm64")


FAMILIES = {
    # Compute Engine's table of disk types, in part: (takes a Persistent Disk, takes Hyperdisk Balanced)
    "e2-standard-2": (True, False), "n1-standard-2": (True, False), "n2-standard-2": (True, False),
    "n2d-standard-2": (True, False), "t2d-standard-2": (True, False), "t2a-standard-2": (True, False),
    "c2-standard-4": (True, False), "c3-standard-4": (True, True), "c3d-standard-4": (True, True),
    "n4-standard-2": (False, True), "n4a-standard-2": (False, True), "n4d-standard-2": (False, True),
    "c4-standard-2": (False, True), "c4a-standard-2": (False, True), "c4d-standard-2": (False, True),
}  # fmt: skip


@pytest.mark.parametrize(("type_", "takes"), FAMILIES.items())
def test_machines_at_google_have_disks_that_their_family_takes(
    type_: str, takes: tuple[bool, bool]
) -> None:
    arch = "arm64" if CLOUDS["gcp"].ARM.fullmatch(type_) else "amd64"
    pools = {f"pools.{pool}.{key}": value for pool in ("master", "worker") for key, value in (("machineType", type_), ("arch", arch))}  # fmt: skip
    usual = planned(gcp(pools))
    for disk, is_taken in (("pd-balanced", takes[0]), ("hyperdisk-balanced", takes[1])):
        for key in ("diskType", "etcdDiskType"):
            edit = {**pools, f"machines.gcp.{key}": disk}
            if is_taken:
                planned(gcp(edit))
            else:
                found = dict(problems(gcp(edit)))
                assert f"{type_} takes no {disk}" in found[f"machines.gcp.{key}"]
    said = usual.spec.machines.gcp
    assert said is not None
    for disk_type in (disks.boot(type_, None), disks.etcd(type_, None)):
        assert takes[disk_type.startswith("hyperdisk")]


ARN = "arn:aws:iam::aws:policy/ReadOnlyAccess"

GCP_PROBLEMS = [
    ({"machines.gcp.diskKey": DISK_KEYS["gcp"].replace("europe-west3", "europe-west1")}, {"machines.gcp.diskKey": "is a key of europe-west1"}),
    ({"machines.gcp.diskKey": f"{DISK_KEYS['gcp']}/cryptoKeyVersions/1"}, {"machines.gcp.diskKey": "is not a valid name of a key"}),
    ({"machines.gcp": GONE}, {"machines.gcp": "is missing; provider gcp needs it"}),
    ({"machines.gcp.project": GONE}, {"machines.gcp.project": "is missing"}),
    ({"machines.gcp.project": "My_Project"}, {"machines.gcp.project": "is not a valid project ID"}),
    ({"machines.gcp.region": "europe-west3-a"}, {"machines.gcp.region": "is not a valid region"}),
    ({"machines.gcp.sshFrom": []}, {"machines.gcp.sshFrom": "is empty; name the networks"}),
    ({"machines.gcp.sshFrom": GONE}, {"machines.gcp.sshFrom": "is empty; name the networks"}),
    ({"machines.gcp.access": "tunnel"}, {"machines.gcp.sshFrom": "with access tunnel there is no SSH from outside; leave it out"}),
    ({"machines.gcp.access": "bridge"}, {"machines.gcp.access": "is not one of 'bastion', 'tunnel', 'public'"}),
    ({"machines.gcp.tunnelPort": 20023}, {"machines.gcp.tunnelPort": "is for access tunnel, and access is bastion"}),
    ({"machines.gcp.tunnelPort": 443}, {"machines.gcp.tunnelPort": "1024"}),
    ({**behind_tunnel("gcp"), "machines.gcp.apiLoadBalancer": "external", "cluster.endpoint": "api.example.com"}, {"machines.gcp.apiFrom": "nobody would reach the external load balancer"}),
    *(({"machines.gcp.labels": {key: "a"}}, {"machines.gcp.labels": "begins with a letter"}) for key in ("", "1a", "_a", "-a")),
    ({"machines.gcp.sshFrom": ["203.0.113.1/24"]}, {"machines.gcp.sshFrom[0]": "has host bits set"}),
    ({"machines.gcp.cidr": "10.20.0.0/33"}, {"machines.gcp.cidr": "is not an IPv4 network"}),
    ({"machines.gcp.cidr": "10.244.0.0/20"}, {"machines.gcp.cidr": "overlaps cluster.podCidr"}),
    ({"machines.gcp.cidr": "10.20.0.0/28"}, {"pools.worker.addressOffset": "would be address 102"}),
    ({"machines.gcp.cidr": "10.20.0.0/30"}, {"machines.gcp.cidr": "/30 does not fit", "pools.master.addressOffset": "would be", "pools.worker.addressOffset": "would be"}),
    ({"machines.gcp.subnetwork": "mine"}, {"machines.gcp.network": "is the network of subnetwork"}),
    ({"machines.gcp.image": "ami-0123456789abcdef0"}, {"machines.gcp.image": "is not an image of Google"}),
    ({"machines.gcp.image": "debian-cloud/debian-12"}, {"machines.gcp.image": "has no cloud-init"}),
    ({"machines.gcp.machineType": "m6i.large"}, {"machines.gcp.machineType": "m6i.large is not a type of gcp"}),
    ({"machines.gcp.serviceAccountRoles": ["roles/storage.admin", "roles/storage.admin"]}, {"machines.gcp.serviceAccountRoles[1]": "roles/storage.admin is there twice"}),
    ({"machines.gcp.workloadIdentity": {"pool": "gcp-mine", "roles": {}}}, {"machines.gcp.workloadIdentity.pool": "is not an ID of a pool"}),
    ({"machines.gcp.workloadIdentity": {"pool": "mine", "roles": {"shop": ["roles/viewer"]}}}, {"machines.gcp.workloadIdentity.roles.shop": "is not a service account"}),
    ({"machines.gcp.workloadIdentity": {"pool": "mine", "roles": {f"shop/{'a' * 101}": ["roles/viewer"]}}}, {f"machines.gcp.workloadIdentity.roles.shop/{'a' * 101}": "has more than 127 characters"}),
    ({"machines.gcp.workloadIdentity": {"pool": "mine", "roles": {"shop/a": ["roles/viewer", "roles/viewer"]}}}, {"machines.gcp.workloadIdentity.roles.shop/a[1]": "roles/viewer is there twice"}),
    ({"machines.gcp.workloadIdentity": {"pool": "mine", "roles": {}}, "controlPlane.serviceAccountIssuers": [ISSUER]}, {"controlPlane.serviceAccountIssuers": "Google has the keys, and asks no issuer"}),
    ({"machines.gcp.serviceAccountRoles": ["editor"]}, {"machines.gcp.serviceAccountRoles[0]": "is not a valid role"}),
    ({"machines.gcp.labels": {"Team": "a"}}, {"machines.gcp.labels.Team": "is not a label of a cloud"}),
    ({"machines.gcp.apiLoadBalancer": "external", "cluster.endpoint": "192.0.2.7"}, {"cluster.endpoint": "192.0.2.7 is not known to be the load balancer's address before that is made; leave it out"}),
    ({"cluster.endpoint": "api.example.com:443"}, {"cluster.endpoint": "listens on 6443"}),
    ({"machines.ssh": {"agent": True}, "machines.lab": {"subnet": "10.9.0.0/24"}, "machines.onRelease": "wipe", "machines.containers": True},
     {"machines.ssh": "does nothing on gcp", "machines.lab": "does nothing", "machines.onRelease": "does nothing", "machines.containers": "does nothing"}),
    ({"frontDoors.vip": {"address": "10.20.0.200", "subnet": "10.20.0.0/20"}}, {"frontDoors.vip": "no network of a cloud carries"}),
    ({"frontDoors.dns": "unmanaged", "machines.gcp.apiLoadBalancer": "external", "cluster.endpoint": "api.example.com"}, {"frontDoors.dns": "see the stack's output apiAddress"}),
    ({"network.backend": "host-gw"}, {"network.backend": "needs one layer 2"}),
    ({"pools.worker.zones": GONE}, {"pools.worker.zones": "is missing; name zones of europe-west3"}),
    ({"pools.worker.zones": ["us-east1-b"]}, {"pools.worker.zones": "is not a zone of region europe-west3"}),
    ({"pools.worker.count": GONE}, {"pools.worker.count": "gcp makes this many"}),
    ({"pools.worker.hosts": [], "pools.worker.count": GONE}, {"pools.worker.hosts": "on gcp write count", "pools.worker.count": "is missing"}),
    ({"pools.master.zones": [A, B]}, {"pools.master.zones": f"{A} would hold 2 of 3 etcd members"}),
    ({"pools.master.zones": [A]}, {"pools.master.zones": f"{A} would hold 3 of 3 etcd members"}),
    ({"nodes.master-2.zone": C}, {"pools.master.zones": f"{C} would hold 2 of 3"}),
    ({"pools.worker.arch": "arm64"}, {"pools.worker.arch": "e2-standard-2 is a machine of amd64"}),
    ({"pools.worker.machineType": "t2a-standard-2"}, {"pools.worker.arch": "is a machine of arm64, the pool says amd64"}),
    ({"pools.worker.arch": "arm64", "pools.worker.machineType": "t2a-standard-2", "machines.gcp.imageArm64": "ubuntu-os-cloud/ubuntu-2404-lts-amd64"}, {"machines.gcp.imageArm64": "is not an image for arm64"}),
    ({"pools.master.addressOffset": 3}, {"pools.master.addressOffset": "3 is too small; at least 5"}),
    ({"pools.master.addressOffset": 100}, {"pools.worker.addressOffset": "meet the addresses of pool master"}),
    ({"cluster.name": "a-cluster-with-quite-a-long-name", "pools/a-pool-that-is-rather-long": {"roles": ["worker"], "count": 1, "zones": [A], "addressOffset": 200}},
     {"pools.a-pool-that-is-rather-long": "use a shorter name"}),
    ({"machines.aws": {"region": "eu-central-1", "sshFrom": ["192.0.2.0/24"], "subnets": {}}}, {"machines.aws": "is for provider aws"}),
]  # fmt: skip

AWS_PROBLEMS = [
    ({"machines.aws.workloadIdentity": {"policies": {}}}, {"machines.aws.workloadIdentity": "one of both"}),
    ({"machines.aws.workloadIdentity": {"policies": {}, "bucket": "ours", "issuer": ISSUER}}, {"machines.aws.workloadIdentity": "one of both"}),
    ({"machines.aws.workloadIdentity": {"policies": {}, "bucket": "our-keys"}}, {"controlPlane.serviceAccountIssuers": f"is without {ISSUER}, by which IAM knows the cluster; in a new cluster write [{ISSUER}], in one that lives first [https://kubernetes.default.svc.cluster.local, {ISSUER}]"}),
    ({"machines.aws.workloadIdentity": {"policies": {}, "issuer": "https://id.example.com"}, "controlPlane.serviceAccountIssuers": [ISSUER]}, {"controlPlane.serviceAccountIssuers": "is without https://id.example.com"}),
    ({"machines.aws.workloadIdentity": {"policies": {}, "bucket": "our.keys"}, "controlPlane.serviceAccountIssuers": [ISSUER.replace("-keys", ".keys")]}, {"machines.aws.workloadIdentity.bucket": "our.keys has dots"}),
    ({"machines.aws.workloadIdentity": {"policies": {"a/b": [ARN, ARN]}, "bucket": "our-keys"}, "controlPlane.serviceAccountIssuers": [ISSUER]}, {"machines.aws.workloadIdentity.policies.a/b[1]": f"{ARN} is there twice"}),
    ({"machines.aws.diskKey": DISK_KEYS["aws"].replace("eu-central-1", "eu-west-1")}, {"machines.aws.diskKey": "is not a key of eu-central-1, where the disks are"}),
    ({"machines.aws.diskKey": DISK_KEYS["aws"].replace("key/", "alias/")}, {"machines.aws.diskKey": "is not a valid ARN of a key"}),
    *(({f"machines.aws.etcdDisk{key}": value for key, value in said.items()}, {f"machines.aws.etcdDisk{key}": text}) for said, key, text in (
        ({"Iops": 2999}, "Iops", "2999 does not fit gp3 of 20 GiB; write 3000 to 10000"),
        ({"Iops": 16001, "Gib": 100}, "Iops", "16001 does not fit gp3 of 100 GiB; write 3000 to 16000"),
        ({"Iops": 20001, "Type": "io2"}, "Iops", "20001 does not fit io2 of 20 GiB; write 100 to 20000"),
        ({"Throughput": 200, "Type": "io2"}, "Throughput", "is for gp3"),
        ({"Throughput": 751}, "Throughput", "751 MiB/s need etcdDiskIops of 3004 or more"),
    )),
    ({"machines.aws.etcdDiskIops": 8000, "machines.aws.etcdDiskGib": 50, "pools.master.etcdDiskGib": 15}, {"machines.aws.etcdDiskIops": "does not fit gp3 of 15 GiB; write 3000 to 7500"}),
    ({"machines.aws": GONE}, {"machines.aws": "is missing; provider aws needs it"}),
    ({"machines.aws.cidr": "10.16.0.0/13"}, {"machines.aws.cidr": "/13 does not fit; use /16 to /28"}),
    ({"machines/aws/subnets/eu-central-1c": GONE}, {"pools.master.zones": "eu-central-1c has no subnet", "pools.worker.zones": "eu-central-1c has no subnet"}),
    ({"machines/aws/subnets/eu-central-1a/cidr": "10.21.0.0/20"}, {"machines.aws.subnets.eu-central-1a.cidr": "is not within machines.aws.cidr"}),
    ({"machines/aws/subnets/eu-central-1b/cidr": "10.20.0.0/20"}, {"machines.aws.subnets.eu-central-1b.cidr": "overlaps machines.aws.subnets.eu-central-1a.cidr"}),
    ({"machines/aws/subnets/eu-central-1a/publicCidr": GONE}, {"machines.aws.subnets.eu-central-1a.publicCidr": "are in a public subnet"}),
    ({"machines/aws/subnets/eu-central-1a/id": "subnet-0123456789abcdef0"}, {"machines.aws.subnets.eu-central-1a.id": "stands without machines.aws.vpcId"}),
    ({"machines.aws.vpcId": "vpc-0123456789abcdef0"}, {f"machines.aws.subnets.eu-central-1{zone}.id": "is missing; vpcId is given" for zone in "abc"}),
    *(({"cluster.name": name}, {"cluster.name": f"AWS takes none that begins with {begins}"}) for name, begins in (
        ("internal", "internal-"), ("internal-a", "internal-"), ("sg", "sg-"), ("sg-1", "sg-"))),
    *(({"machines.aws.labels": {key: "a"}}, {"machines.aws.labels": "begins with a letter"}) for key in ("", "1a", "_a", "-a")),
    ({"machines.aws.labels": {f"a{number}": "" for number in range(41)}}, {"machines.aws.labels": "are 41, and a cloud takes 40"}),
    ({"machines.aws.account": "1234"}, {"machines.aws.account": "is not a valid number of an account"}),
    ({"machines.aws.image": "debian/debian-12"}, {"machines.aws.image": "names no owner of images"}),
    ({**behind_tunnel("aws"), "machines.aws.bastionImage": "canonical/ubuntu"}, {"machines.aws.bastionImage": "names no owner of images"}),
    ({"machines.aws.access": "public", "machines.aws.bastionImage": "amazon/al2023-ami-2023"}, {"machines.aws.bastionImage": "is for a bastion, which access public has not"}),
    ({"machines.aws.access": "public", "machines.aws.bastionMachineType": "t3.small"}, {"machines.aws.bastionMachineType": "is for a bastion, which access public has not"}),
    ({"machines.aws.bastionMachineType": "e2-small"}, {"machines.aws.bastionMachineType": "is not a type of aws"}),
    ({"machines.aws.bastionMachineType": "t2.micro"}, {"machines.aws.bastionMachineType": "is not a Nitro type"}),
    ({"machines.aws.image": "ami-0123456789abcdef0", "machines.aws.bastionMachineType": "t4g.small"}, {"machines.aws.bastionMachineType": "t4g.small is a machine of arm64, and the bastion's image ami-0123456789abcdef0 is for amd64"}),
    ({**behind_tunnel("aws"), "machines/aws/subnets/eu-central-1a/publicCidr": GONE}, {"machines.aws.subnets.eu-central-1a.publicCidr": "are in a public subnet"}),
    ({"machines.aws.machineType": "e2-standard-2"}, {"machines.aws.machineType": "is not a type of aws"}),
    ({"machines.aws.policies": [ARN, ARN]}, {"machines.aws.policies[1]": f"{ARN} is there twice"}),
    ({"machines.aws.policies": [ARN, "arn:aws:iam::123456789012:policy/own/readonlyaccess"]}, {"machines.aws.policies[1]": "has the last word of machines.aws.policies[0]"}),
    ({"machines.aws.policies": ["AdministratorAccess"]}, {"machines.aws.policies[0]": "is not a valid ARN of a policy"}),
    ({"machines.aws.image": "ami-0123456789abcdef0", "pools.worker.arch": "arm64", "pools.worker.machineType": "m7g.large"}, {"machines.aws.image": "is for one architecture"}),
    ({"pools.worker.zones": ["eu-central-1"]}, {"pools.worker.zones": "is not a zone of region eu-central-1"}),
    ({"machines.gcp": {"project": "my-project", "region": "europe-west3", "sshFrom": ["192.0.2.0/24"]}}, {"machines.gcp": "is for provider gcp"}),
]  # fmt: skip


@pytest.mark.parametrize(("edits", "expected"), GCP_PROBLEMS)
def test_a_bad_config_for_google_is_refused(
    edits: dict[str, object], expected: dict[str, str]
) -> None:
    assert_problems(problems(gcp(edits)), expected)


@pytest.mark.parametrize(("edits", "expected"), AWS_PROBLEMS)
def test_a_bad_config_for_aws_is_refused(
    edits: dict[str, object], expected: dict[str, str]
) -> None:
    assert_problems(problems(aws(edits)), expected)


@pytest.mark.parametrize("region", ["cn-north-1", "us-gov-west-1"])
def test_images_of_partitions_are_named_for_their_owners_have_other_numbers(region: str) -> None:
    """An owner's number of the public regions finds nothing there, an hour into the first update."""
    tunnel = behind_tunnel("aws")
    assert_problems(problems(aws(of_region(region))), {"machines.aws.image": "has none; name one there"})  # fmt: skip
    own: dict[str, object] = {"machines.aws.image": "self/mine"}
    assert_problems(problems(aws(of_region(region, **own, **tunnel))), {"machines.aws.bastionImage": "name one there"})  # fmt: skip
    planned(aws(of_region(region, **own)))


def assert_problems(found: list[tuple[str, str]], expected: dict[str, str]) -> None:
    assert {path for path, _ in found} == set(expected), found
    for path, text in found:
        assert expected[path] in text, (path, text)


def test_all_problems_come_at_once() -> None:
    found = problems(
        gcp(
            {
                "machines.gcp.cidr": "10.20.0.7/20",
                "machines.gcp.sshFrom": [],
                "pools.master.zones": [A],
                "pools.worker.machineType": "t2a-standard-2",
                "network.backend": "host-gw",
            }
        )
    )
    assert {path for path, _ in found} >= {
        "machines.gcp.cidr",
        "machines.gcp.sshFrom",
        "pools.master.zones",
        "pools.worker.arch",
        "network.backend",
    }


def test_few_zones_can_be_accepted() -> None:
    plan = planned(gcp({"pools.master.zones": [A], "machines.gcp.fewZones": True}))
    assert [node.zone for node in plan.masters] == [A, A, A]
    assert [path for path, _ in plan.warnings] == ["pools"]


@pytest.mark.parametrize("config", [lab, adopted])
def test_settings_of_clouds_elsewhere_are_refused(config: type) -> None:
    found = problems(
        config({"pools.worker.machineType": "e2-standard-2", "pools.worker.diskGib": 50})
    )
    assert_problems(found, dict.fromkeys(["pools.worker.machineType", "pools.worker.diskGib"], "is for providers gcp, aws, hcloud"))  # fmt: skip


def test_a_zone_of_an_adopted_machine_stands_in_hosts() -> None:
    assert_problems(
        problems(adopted({"nodes.worker-1.zone": "room"})),
        {"nodes.worker-1.zone": "write it in hosts"},
    )


def verdict(before: Plan, after: Plan) -> transition.Verdict:
    return transition.check(memory.read(memory.of(before)), after)


def refused(before: Plan, after: Plan) -> dict[str, str]:
    with pytest.raises(transition.TransitionError) as raised:
        verdict(before, after)
    return dict(raised.value.problems)


def test_a_further_zone_moves_no_machine() -> None:
    """Which machine's turn it is changes with the number of zones: those that exist are pinned."""
    two = {"pools.worker.zones": [A, B], "pools.worker.count": 3}
    before, three = planned(gcp(two)), {**two, "pools.worker.zones": [A, B, C]}
    found = refused(before, planned(gcp(three)))
    assert set(found) == {"pools.worker"}
    text = f"write {A} at nodes.worker-3.zone, or raise its generation"
    assert text in found["pools.worker"]
    said = refused(before, planned(gcp({**two, "nodes.worker-3.zone": B})))
    assert text in said["nodes.worker-3.zone"]
    verdict(before, planned(gcp({**three, "nodes.worker-3.zone": A, "pools.worker.count": 6})))
    verdict(before, planned(gcp({**three, "nodes.worker-3.generation": 2})))


def test_a_protected_machine_is_not_taken_out_before_its_protection_is() -> None:
    before, after = planned(gcp()), gcp({"pools.master.count": 1})
    found = refused(before, planned(after))
    assert set(found) == {"machines.gcp.deletionProtection"}
    refused(before, planned(gcp({"nodes.master-2.generation": 2})))
    off = {"machines.gcp.deletionProtection": False}
    verdict(before, planned(gcp(off)))
    verdict(planned(gcp(off)), planned(gcp({**off, "pools.master.count": 1})))
    protected = ["machine-protected/master-2", "machine-protected/master-3"]
    by_hand = {"pools.master.count": 1, "allow": protected}
    assert len(verdict(before, planned(gcp(by_hand))).allowed) == 2
    verdict(before, planned(gcp({"pools.worker.count": 1})))
    verdict(planned(aws()), planned(aws({"pools.master.count": 1})))


def test_what_only_new_machines_get_is_said() -> None:
    found = verdict(planned(aws()), planned(aws({"pools.worker.machineType": "m6i.xlarge"})))
    assert [path for path, _ in found.warnings] == ["pools.worker"]
    assert "until their generation is raised worker-1, worker-2 stay" in found.warnings[0][1]
    assert verdict(planned(aws()), planned(aws({"pools.worker.count": 3}))).warnings == ()


@pytest.mark.parametrize(
    ("edits", "path"),
    [
        ({"machines.gcp.project": "another-project"}, "machines.gcp.project"),
        ({"machines.gcp.region": "europe-west4"}, "machines.gcp.region"),
    ],
)
def test_what_machines_are_made_in_is_fixed(edits: dict[str, object], path: str) -> None:
    zones = [f"europe-west4-{zone}" for zone in "abc"]
    moved = {"pools.master.zones": zones, "pools.worker.zones": zones}
    assert path in refused(
        planned(gcp()), planned(gcp(edits | (moved if path.endswith("region") else {})))
    )


def test_a_stack_stays_in_its_account() -> None:
    one, other = ({"machines.aws.account": number * 12} for number in "12")
    assert "machines.aws.account" in refused(planned(aws(one)), planned(aws(other)))
    verdict(planned(aws()), planned(aws(one)))


@pytest.mark.parametrize(("config", "provider"), [(gcp, "gcp"), (aws, "aws")])
def test_between_bastion_and_tunnel_one_can_change_and_it_is_said_what_closes(
    config: type, provider: str
) -> None:
    bastion, tunnel = planned(config()), planned(config(behind_tunnel(provider)))
    where = f"machines.{provider}"
    there = dict(verdict(bastion, tunnel).warnings)
    assert set(there) == {f"{where}.access", f"{where}.apiFrom"}
    assert "reached through 127.0.0.1:20022 from now on: run `make tunnel`" in there[f"{where}.access"]  # fmt: skip
    assert "the API is closed to 203.0.113.0/24" in there[f"{where}.apiFrom"]
    open_still = {**behind_tunnel(provider), f"{where}.apiFrom": ["203.0.113.0/24"]}
    assert dict(verdict(bastion, planned(config(open_still))).warnings).keys() == {f"{where}.access"}  # fmt: skip
    assert verdict(tunnel, bastion).warnings == ()
    assert verdict(tunnel, tunnel).warnings == ()
    # Each machine's commands run again by the new way; what is on it stays.
    found = changes.changes(memory.read(memory.of(bastion)), tunnel)
    assert {node.name for node in found.of("changed")} == {node.name for node in tunnel.nodes}
    texts = {(a.text, a.restarts) for node in found.of("changed") for a in node.actions}
    assert texts == {(f"{CONNECTION.what}: {CONNECTION.then}", None)}
    public = planned(config({f"{where}.access": "public"}))
    for one in (bastion, tunnel):
        assert f"{where}.access" in refused(one, public)
        assert f"{where}.access" in refused(public, one)


def test_a_vpc_that_is_there_needs_no_public_subnet_for_a_tunnel() -> None:
    """Its way out, by which SSM is reached, is its owner's."""
    subnets = {
        f"eu-central-1{zone}": {"cidr": f"10.20.{number}.0/24", "id": f"subnet-0123456789abcde{number}"}
        for number, zone in enumerate("abc")
    }  # fmt: skip
    there = {"machines.aws.vpcId": "vpc-0123456789abcdef0", "machines/aws/subnets": subnets}
    assert planned(aws({**behind_tunnel("aws"), **there})).balancer == "internal"
    assert "machines.aws.subnets.eu-central-1a.publicId" in dict(problems(aws(there)))


def test_the_stack_of_the_docs_is_one() -> None:
    page = (Path(__file__).parents[3] / "docs/install/clouds.md").read_text()
    blocks = re.findall(r"```yaml\n(config:.*?)```", page, re.DOTALL)
    whole, with_spot, more, with_roles, store, with_ingress = (
        yaml.safe_load(block)["config"] for block in blocks
    )
    for config in (with_roles, with_ingress, whole, with_spot, whole | store, whole | more):
        raw = {key.removeprefix("kube-ha:"): value for key, value in config.items()}
        plan = plan_of(load(raw, read_keys=False))
        workers = 8 if config is with_spot else 3
        assert (len(plan.masters), len(plan.workers), plan.balancer) == (3, workers, "internal")
    assert clouds.has_controller(plan.spec)
    assert plan.warnings == ()


CONTROLLER = {"machines.gcp.cloudController": "external"}
CONTROLLER_AWS = {"machines.aws.cloudController": "external"}
FILE = str(Path(__file__).parents[3] / "examples/addons/defaults.yaml")
ADDON = {"addons": {"ccm": {"manifests": [FILE]}}}


def test_machines_are_known_to_a_controller_manager_by_the_clouds_own_words() -> None:
    google, amazon = planned(gcp(CONTROLLER)), planned(aws(CONTROLLER_AWS))
    node, other = google.node("worker-1"), amazon.node("worker-2")
    assert cloud_machines.provider_id(google, node, "prod-worker-1") == (
        "gce://my-project/europe-west3-a/prod-worker-1"
    )
    assert cloud_machines.provider_id(amazon, other, "i-0123456789abcdef0") == (
        "aws:///eu-central-1b/i-0123456789abcdef0"
    )


@pytest.mark.parametrize(("config", "edits"), [(gcp, CONTROLLER), (aws, CONTROLLER_AWS)])
def test_kubelets_read_their_machines_id_from_a_file_of_their_own(
    config: type, edits: dict[str, object]
) -> None:
    was, now = (of_node(plan, plan.masters[0]) for plan in (planned(config()), planned(config(edits))))  # fmt: skip
    assert was["KUBELET_DROPIN"] in kubelet.drop_in(planned(config()))
    added = now["KUBELET_DROPIN"].replace(was["KUBELET_DROPIN"].rpartition("ExecStart=")[2], "")
    assert "EnvironmentFile=-/etc/kube-ha/kubelet.env\nExecStart=\n" in now["KUBELET_DROPIN"]
    assert added.endswith(" $KUBELET_CLOUD_ARGS")
    # Nothing of the control plane changes: kube-controller-manager 1.36 does nothing with the flag.
    before, after = (of_master(plan, plan.masters[0]) for plan in (planned(config()), planned(config(edits))))  # fmt: skip
    assert after["KUBEADM_CONFIG"] == before["KUBEADM_CONFIG"]


def test_the_approver_knows_the_names_that_awss_controller_manager_gives() -> None:
    frankfurt, virginia = "eu-central-1.compute.internal", "ec2.internal"
    assert f"domain: {frankfurt}" in approver.manifest(planned(aws(CONTROLLER_AWS)))
    assert of_node(planned(aws(CONTROLLER_AWS)), planned(aws()).masters[0])["CLOUD_DOMAIN"] == frankfurt  # fmt: skip
    for plan in (planned(aws()), planned(gcp(CONTROLLER)), planned(lab())):
        assert "domain" not in approver.manifest(plan)
        assert "CLOUD_DOMAIN" not in of_node(plan, plan.masters[0])
    zones = [f"us-east-1{zone}" for zone in "abc"]
    subnets = {
        zone: {"cidr": f"10.20.{16 * n}.0/20", "publicCidr": f"10.20.{240 + n}.0/24"}
        for n, zone in enumerate(zones)
    }
    edits = {"machines.aws.region": "us-east-1", "machines/aws/subnets": subnets}
    pools = {f"pools.{pool}.zones": zones for pool in ("master", "worker")}
    assert clouds.inner_domain(planned(aws({**CONTROLLER_AWS, **edits, **pools})).spec) == virginia


@pytest.mark.parametrize("config", [gcp, aws])
def test_public_addresses_and_signed_certificates_do_not_go_with_a_controller_manager(
    config: type,
) -> None:
    name = config.__name__
    edits = {f"machines.{name}.cloudController": "external", f"machines.{name}.access": "public"}
    path = f"machines.{name}.cloudController"
    assert_problems(problems(config(edits)), {path: "kubelet.servingCertificates: self-signed"})
    planned(config({**edits, "kubelet.servingCertificates": "self-signed"}))


def test_a_controller_manager_that_nobody_brings_is_warned_about() -> None:
    warnings = dict(planned(gcp(CONTROLLER)).warnings)
    assert "no add-on brings a cloud controller manager" in warnings["machines.gcp.cloudController"]
    assert planned(gcp({**CONTROLLER, **ADDON})).warnings == ()


def test_nodes_that_are_there_tell_their_machines_before_a_controller_manager_asks() -> None:
    with pytest.raises(transition.TransitionError) as refused:
        verdict(planned(gcp()), planned(gcp({**CONTROLLER, **ADDON})))
    ((path, text),) = refused.value.problems
    assert path == "addons.ccm"
    assert "run up without it, then add it" in text
    allowed = {"allow": ["cloud-controller/ccm"]}
    assert verdict(planned(gcp()), planned(gcp({**CONTROLLER, **ADDON, **allowed}))).allowed
    first = verdict(planned(gcp()), planned(gcp(CONTROLLER)))
    assert "Nodes that are there get the ID of their machine" in first.warnings[0].text
    assert verdict(planned(gcp(CONTROLLER)), planned(gcp({**CONTROLLER, **ADDON}))).warnings == ()
    # A new cluster has it from the start.
    new = transition.check(None, planned(gcp({**CONTROLLER, **ADDON})))
    assert new.allowed == ()
    assert {path for path, _ in new.warnings} == {"network.plugin"}


def test_what_a_controller_manager_leaves_behind_is_told_when_it_goes() -> None:
    both = planned(gcp({**CONTROLLER, **ADDON}))
    (warning,) = verdict(both, planned(gcp(ADDON))).warnings
    assert "load balancers, routes and disks" in warning.text


@pytest.mark.parametrize(
    ("edits", "count", "way"),
    [
        ({}, 4, ""),
        ({"machines.aws.apiLoadBalancer": "external", "cluster.endpoint": "api.example.com"}, 4, ""),
        (behind_tunnel("aws"), 3, ""),
        ({"machines.aws.natGateways": "one"}, 2, ""),
        ({"machines.aws.access": "public"}, 5, ""),
        ({"machines.aws.access": "public", "pools.worker.count": 3}, 6, "access: bastion takes fewer"),
    ],
)  # fmt: skip
def test_more_elastic_ips_than_an_account_has_are_told_before_anything_is_made(
    edits: dict[str, object], count: int, way: str
) -> None:
    plan = planned(aws(edits))
    assert quotas.elastic_ips(plan.spec, inventory.places(plan.spec)) == count
    texts = [text for path, text in plan.warnings if path == "machines.aws"]
    assert bool(texts) == bool(way)
    assert not way or (f"takes {count} Elastic IPs" in texts[0] and way in texts[0])


def test_the_examples_stay_within_what_an_account_on_aws_has_at_first() -> None:
    for name in ("aws", "tunnel", "dns"):
        config = yaml.safe_load((Path(__file__).parents[3] / f"examples/{name}.yaml").read_text())
        raw = {key.removeprefix("kube-ha:"): value for key, value in config["config"].items()}
        warnings = plan_of(load(raw, read_keys=False)).warnings
        assert not [text for _, text in warnings if "Elastic" in text]


MINE: dict[str, object] = {
    "machines.aws.vpcId": "vpc-0123456789abcdef0",
    "machines/aws/subnets": {
        f"eu-central-1{zone}": {
            "cidr": f"10.20.{16 * number}.0/20",
            "id": f"subnet-0123456789abcde{number}",
            "publicId": f"subnet-0123456789abcdf{number}",
        }
        for number, zone in enumerate("abc")
    },
}
SHARED: dict[str, object] = {"machines.gcp.network": "mine", "machines.gcp.subnetwork": "mine", "machines.gcp.networkProject": "the-host-project"}  # fmt: skip
OTHER_GROUND: dict[str, tuple[Config, dict[str, object], dict[str, object], str]] = {
    "a VPC that is there": (aws, {}, MINE, "machines.aws.vpcId"),
    "one of its own": (aws, MINE, {}, "machines.aws.vpcId"),
    "another VPC": (aws, MINE, {**MINE, "machines.aws.vpcId": "vpc-0123456789abcdef1"}, "machines.aws.vpcId"),
    "another subnet": (aws, MINE, {**MINE, "machines/aws/subnets/eu-central-1b/id": "subnet-0123456789abcdea1"}, "machines.aws.subnets.eu-central-1b.id"),
    "another public range": (aws, {}, {"machines/aws/subnets/eu-central-1b/publicCidr": "10.20.250.0/24"}, "machines.aws.subnets.eu-central-1b.publicCidr"),
    "a network that is there": (gcp, {}, {"machines.gcp.network": "mine"}, "machines.gcp.network"),
    "another subnet at Google": (gcp, SHARED, {**SHARED, "machines.gcp.subnetwork": "other"}, "machines.gcp.subnetwork"),
    "another project's": (gcp, SHARED, {**SHARED, "machines.gcp.networkProject": "another-project"}, "machines.gcp.networkProject"),
    "other addresses of its own": (gcp, {}, {"machines.gcp.addressOffset": 4, "pools.master.addressOffset": 10}, "machines.gcp.addressOffset"),
}  # fmt: skip


@pytest.mark.parametrize(("config", "start", "edit", "path"), OTHER_GROUND.values(), ids=OTHER_GROUND)  # fmt: skip
def test_machines_do_not_move_to_another_network(
    config: Config, start: dict[str, object], edit: dict[str, object], path: str
) -> None:
    """The old one would be deleted around them, and the provider keeps them where they are."""
    assert path in refused(planned(config(start)), planned(config(edit)))


def test_a_zone_more_brings_a_subnet_of_its_own() -> None:
    few = {"machines/aws/subnets/eu-central-1c": GONE, "machines.aws.fewZones": True}
    few |= {f"pools.{pool}.zones": ["eu-central-1a", "eu-central-1b"] for pool in ("master", "worker")}  # fmt: skip
    more = {"machines.aws.fewZones": True, "pools.master.zones": ["eu-central-1a", "eu-central-1b"]}
    more |= {"pools.worker.zones": ["eu-central-1a", "eu-central-1b", "eu-central-1c"]}
    verdict(planned(aws(few)), planned(aws(more)))


def test_addresses_of_the_stack_itself_can_lie_behind_those_that_are_taken() -> None:
    """Google gives the first free ones to whoever comes: in a subnet with machines they are taken."""
    moved = {"machines.gcp.addressOffset": 200, "pools.master.addressOffset": 210, "pools.worker.addressOffset": 300}  # fmt: skip
    plan = planned(gcp(moved))
    assert clouds.balancer_addresses(plan.spec) == ("10.20.0.202",)
    assert cloud_machines.bastion_address(plan) == "10.20.0.201"
    assert cloud_machines.bastion_address(planned(gcp({**moved, **behind_tunnel("gcp")}))) == "10.20.0.200"  # fmt: skip
    found = problems(gcp({"machines.gcp.addressOffset": 200}))
    assert {path for path, _ in found} == {"pools.master.addressOffset", "pools.worker.addressOffset"}  # fmt: skip
    assert all("at least 202" in text for _, text in found)
    shared = {"machines.gcp.network": "mine", "machines.gcp.networkProject": "the-host-project"}
    assert_problems(problems(gcp(shared)), {"machines.gcp.subnetwork": "the subnet is there too"})


@pytest.mark.parametrize("config", [gcp, aws])
def test_disks_of_etcd_grow_and_do_not_shrink_with_a_new_machine_neither(config: type) -> None:
    path = f"machines.{config.__name__}"
    start = {f"{path}.etcdDiskGib": 40, f"{path}.deletionProtection": False}
    for more in ({}, {"nodes.master-2.generation": 2}):
        smaller = refused(planned(config(start)), planned(config({**start, f"{path}.etcdDiskGib": 30, **more})))  # fmt: skip
        assert "disks of master-1, master-2, master-3 have 40 GiB, and none shrinks" in smaller[f"{path}.etcdDiskGib"]  # fmt: skip
        bigger = verdict(planned(config(start)), planned(config({**start, "pools.master.etcdDiskGib": 60, **more})))  # fmt: skip
        assert not [text for _, text in bigger.warnings if "disk" in text]
    own = {**start, "pools.master.etcdDiskGib": 60}
    assert "pools.master.etcdDiskGib" in refused(planned(config(own)), planned(config({**own, "pools.master.etcdDiskGib": 50})))  # fmt: skip


STALE: dict[str, tuple[Config, dict[str, object]]] = {
    "image": (aws, {"machines.aws.image": "self/mine"}),
    "boot disks": (aws, {"machines.aws.diskType": "io2"}),
    "routes of pods": (aws, {"machines.aws.podRoutes": True}),
    "pods and metadata": (aws, {"machines.aws.podMetadata": True}),
    "image at Google": (gcp, {"machines.gcp.image": "ubuntu-os-cloud/ubuntu-2604-lts-amd64"}),
    "secure boot": (gcp, {"machines.gcp.secureBoot": False}),
    "boot disks at Google": (gcp, {"machines.gcp.diskType": "pd-ssd"}),
    "a key": (aws, {"machines.aws.diskKey": DISK_KEYS["aws"]}),
    "a key at Google": (gcp, {"machines.gcp.diskKey": DISK_KEYS["gcp"]}),
}  # fmt: skip


@pytest.mark.parametrize(("config", "edit"), STALE.values(), ids=STALE)
def test_what_machines_that_are_there_do_not_follow_is_said_of_each_pool(
    config: Config, edit: dict[str, object]
) -> None:
    found = dict(verdict(planned(config({})), planned(config(edit))).warnings)
    said = {path for path in found if not path.startswith("pools.")}
    assert set(found) == {"pools.master", "pools.worker", *said}
    # Disks of etcd outlive their machines.
    assert said == {path for path in edit if path.endswith(".diskKey")}
    assert "until their generation is raised worker-1, worker-2 stay as they are" in found["pools.worker"]  # fmt: skip
