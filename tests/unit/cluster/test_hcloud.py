"""Machines on Hetzner Cloud: what a config means, what is wrong with one, and what of it never changes."""

from __future__ import annotations

import pytest

from stacks.cluster import cloud_resources, clouds
from stacks.edits import memory, transition
from stacks.load import load
from stacks.phases.node import of_node
from stacks.providers.registry import CLOUDS
from tests.unit.configs import GONE, gcp, hcloud, lab, planned, problems

OUTSIDE = {"machines.hcloud.apiLoadBalancer": "external", "machines.hcloud.apiFrom": ["0.0.0.0/0"]}
WALL = {"networks": ["10.20.0.0/20"], "sshFrom": ["203.0.113.0/24"], "apiFrom": ["203.0.113.0/24"]}
MANAGED = {"cluster.endpoint": "api.example.com", "frontDoors": {"dns": "managed", "zone": {"domain": "example.com", "id": "my-zone"}}}  # fmt: skip
MANY = {"pools.worker.count": 30, "frontDoors.ingress": {}}

PROBLEMS = [
    ({"machines.hcloud": GONE}, {"machines.hcloud": "is missing; provider hcloud needs it"}),
    ({"machines.hcloud.sshFrom": GONE}, {"machines.hcloud.sshFrom": "is empty; name the networks"}),
    ({"machines.hcloud.access": "bastion"}, {"machines.hcloud.access": "is not one of 'public'"}),
    ({"machines.hcloud.networkZone": "eu-west"}, {"machines.hcloud.networkZone": "is not one of 'eu-central', 'us-east'"}),
    ({"pools.worker.zones": ["ash"]}, {"pools.worker.zones": "ash is not a zone of region eu-central; write it as 'fsn1'"}),
    ({"pools.worker.zones": ["fsn1-dc14"]}, {"pools.worker.zones": "is not a zone of region eu-central"}),
    ({"nodes.worker-1.zone": "nbg2"}, {"nodes.worker-1.zone": "nbg2 is not a zone"}),
    ({"pools.master.zones": ["fsn1"]}, {"pools.master.zones": "accept it with machines.hcloud.fewZones: true"}),
    ({"machines.hcloud.machineType": "m6i.large"}, {"machines.hcloud.machineType": "is not a type of hcloud; write it as 'cx33'"}),
    ({"pools.worker.arch": "arm64"}, {"pools.worker.arch": "cx33 is a machine of amd64"}),
    ({"machines.hcloud.image": "debian-cloud/debian-12"}, {"machines.hcloud.image": "is not a valid image; write it as 'debian-12'"}),
    ({"machines.hcloud.cidr": "100.64.0.0/20"}, {"machines.hcloud.cidr": "is not private"}),
    ({"machines.hcloud.cidr": "172.31.0.0/20"}, {"machines.hcloud.cidr": "has 172.31.1.1, the gateway of every server"}),
    ({"machines.hcloud.cidr": "10.20.0.0/29"}, {"machines.hcloud.cidr": "/29 does not fit", "pools.master.addressOffset": "lower it", "pools.worker.addressOffset": "lower it"}),
    ({"pools.master.addressOffset": 3}, {"pools.master.addressOffset": "3 is too small; at least 5"}),
    ({"machines.hcloud.diskGib": 80}, {"machines.hcloud.diskGib": "as big as the server type has it; leave it out"}),
    ({"pools.worker.diskGib": 80}, {"pools.worker.diskGib": "as big as the server type has it; leave it out"}),
    ({"machines.hcloud.etcdDiskGib": 11000}, {"machines.hcloud.etcdDiskGib": "11000 is more than a volume has, 10240"}),
    ({"pools.master.etcdDiskGib": 11000}, {"pools.master.etcdDiskGib": "11000 is more than a volume has, 10240"}),
    ({"machines.hcloud.podRoutes": True}, {"machines.hcloud.podRoutes": "is not a setting of Hetzner's servers"}),
    ({"machines.hcloud.bastionMachineType": "cx23"}, {"machines.hcloud.bastionMachineType": "is for a bastion"}),
    ({"machines.hcloud.tunnelPort": 20023}, {"machines.hcloud.tunnelPort": "is for access tunnel"}),
    ({"machines.hcloud.ingressFrom": ["192.0.2.0/24"], "frontDoors.ingress": {}}, {"machines.hcloud.ingressFrom": "let in everybody; leave it out"}),
    ({"machines.hcloud.apiLoadBalancer": "external"}, {"machines.hcloud.apiFrom": "write 0.0.0.0/0 if that is meant, or apiLoadBalancer: internal"}),
    ({**OUTSIDE, "frontDoors.dns": "unmanaged", "cluster.endpoint": "api.example.com"}, {"frontDoors.dns": "write none and see the stack's output"}),
    (MANAGED, {"frontDoors.dns": "managed is by the DNS of gcp or aws, machines are of hcloud; write unmanaged, or none"}),
    ({"pools.worker.spot": True}, {"pools.worker.spot": "is for clouds that sell such machines"}),
    (MANY, {"machines.hcloud.loadBalancerType": "lb11 has 25 machines behind it, and ingress 30; take lb21"}),
    ({**MANY, "pools.worker.count": 151, "machines.hcloud.loadBalancerType": "lb31"}, {"machines.hcloud.loadBalancerType": "name fewer pools"}),
    ({"machines.hcloud.cloudController": "external"}, {"machines.hcloud.cloudController": "kubelet.servingCertificates: self-signed"}),
    ({"network.backend": "host-gw"}, {"network.backend": "needs one layer 2"}),
    ({"frontDoors.vip": {"address": "10.20.0.200"}}, {"frontDoors.vip": "machines.hcloud.apiLoadBalancer"}),
    ({"machines.ssh": {"user": "ops"}}, {"machines.ssh": "does nothing on hcloud"}),
    ({"machines.firewall": {**WALL, "sshFrom": ["192.0.2.0/24"]}}, {"machines.firewall.sshFrom": "lacks 203.0.113.0/24"}),
    ({"machines.firewall": {**WALL, "apiFrom": []}}, {"machines.firewall.apiFrom": "lacks 203.0.113.0/24"}),
    ({"machines.firewall": {**WALL, "networks": ["10.20.0.8/29", "10.20.0.96/28"]}}, {"machines.firewall.networks": "has no network with 10.20.0.5, the load balancer's"}),
]  # fmt: skip


@pytest.mark.parametrize(("edits", "expected"), PROBLEMS)
def test_problems_have_their_path_and_a_way_out(
    edits: dict[str, object], expected: dict[str, str]
) -> None:
    found = dict(problems(hcloud(edits)))
    assert set(found) == set(expected), found
    for path, text in expected.items():
        assert text in found[path]


def test_addresses_are_of_the_one_subnet_and_the_first_ones_are_taken() -> None:
    plan = planned(hcloud())
    assert {node.name: (node.address, node.zone) for node in plan.nodes} == {
        "master-1": ("10.20.0.11", "fsn1"),
        "master-2": ("10.20.0.12", "nbg1"),
        "master-3": ("10.20.0.13", "hel1"),
        "worker-1": ("10.20.0.101", "fsn1"),
        "worker-2": ("10.20.0.102", "nbg1"),
    }
    assert (plan.balancer, plan.endpoint) == ("internal", "10.20.0.5:6443")
    assert clouds.way_in(plan.spec) == "public"
    outside = planned(hcloud(OUTSIDE))
    assert outside.endpoint == "apiAddress:6443"
    taken = [one.properties["ip"] for made in (plan, outside, planned(hcloud({"frontDoors.ingress": {}})))
             for one in cloud_resources.told(made, ()).values() if "ip" in one.properties]  # fmt: skip
    assert {*taken} == {"10.20.0.3", "10.20.0.4", "10.20.0.5"}


@pytest.mark.parametrize(
    ("type_", "arch"), [("cx33", "amd64"), ("cpx32", "amd64"), ("ccx13", "amd64"), ("cax21", "arm64")]
)  # fmt: skip
def test_architecture_is_known_by_the_server_type(type_: str, arch: str) -> None:
    cloud = CLOUDS["hcloud"]
    assert cloud.TYPE[0].fullmatch(type_)
    assert bool(cloud.ARM.fullmatch(type_)) == (arch == "arm64")


def test_what_a_network_takes_and_where_types_are_sold_is_warned_of() -> None:
    many = planned(hcloud({"pools.worker.count": 95, "machines.hcloud.cidr": "10.20.0.0/20"}))
    assert [text for path, text in many.warnings if path == "pools" and "takes 100" in text]
    american = {"machines.hcloud.networkZone": "us-east", "machines.hcloud.fewZones": True, "pools.master.zones": ["ash"], "pools.worker.zones": ["ash"]}  # fmt: skip
    assert "sold in eu-central alone" in dict(planned(hcloud(american)).warnings)["machines.hcloud.machineType"]  # fmt: skip
    other = planned(hcloud({**american, "machines.hcloud.machineType": "ccx13"}))
    assert "machines.hcloud.machineType" not in dict(other.warnings)
    assert "machines.hcloud.machineType" not in dict(planned(hcloud()).warnings)


def test_a_firewall_of_the_machines_own_filters_the_private_network() -> None:
    """Hetzner's filters what comes from outside, and nothing else."""
    plan = planned(hcloud({"machines.firewall": WALL}))
    rules = of_node(plan, plan.node("worker-1"))["FIREWALL"]
    assert "ip saddr 10.20.0.0/20 tcp dport { 10250, 30000-32767 } accept" in rules
    assert "2379" not in rules
    assert "FIREWALL" not in of_node(planned(hcloud()), plan.node("worker-1"))


@pytest.mark.parametrize(
    ("edits", "path"),
    [
        ({"machines.hcloud.cidr": "10.30.0.0/20"}, "machines.hcloud.cidr"),
        ({"machines.hcloud.networkZone": "us-west", "machines.hcloud.fewZones": True, "pools.master.zones": ["hil"], "pools.worker.zones": ["hil"]}, "machines.hcloud.networkZone"),
        ({"pools.worker.zones": ["hel1"]}, "pools.worker"),
        ({"machines.hcloud.etcdDiskGib": 10}, "machines.hcloud.etcdDiskGib"),
    ],
)  # fmt: skip
def test_what_machines_are_made_in_is_fixed(edits: dict[str, object], path: str) -> None:
    before = memory.read(memory.of(planned(hcloud())))
    with pytest.raises(transition.TransitionError) as refused:
        transition.check(before, planned(hcloud(edits)))
    assert path in dict(refused.value.problems)


def test_a_protected_machine_is_not_taken_out_before_its_protection_is() -> None:
    before = memory.read(memory.of(planned(hcloud())))
    for edit in ({"pools.master.count": 1}, {"nodes.master-2.generation": 2}):
        with pytest.raises(transition.TransitionError) as refused:
            transition.check(before, planned(hcloud(edit)))
        assert "and Hetzner protects it" in dict(refused.value.problems)["machines.hcloud.deletionProtection"]  # fmt: skip
    off = {"machines.hcloud.deletionProtection": False}
    transition.check(before, planned(hcloud(off)))
    lifted = memory.read(memory.of(planned(hcloud(off))))
    transition.check(lifted, planned(hcloud({**off, "pools.master.count": 1})))


def test_another_server_type_is_for_machines_still_to_be_made() -> None:
    before = memory.read(memory.of(planned(hcloud())))
    found = transition.check(before, planned(hcloud({"pools.worker.machineType": "cx43"})))
    assert "until their generation is raised worker-1, worker-2 stay" in dict(found.warnings)["pools.worker"]  # fmt: skip


def test_stacks_of_others_are_remembered_as_they_were() -> None:
    """A section that came later is not said where it is not there."""
    for config in (lab(), gcp()):
        assert "hcloud" not in str(memory.of(planned(config))["config"])
    assert load(hcloud()).machines.hcloud is not None
