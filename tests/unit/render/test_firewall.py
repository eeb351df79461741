"""What machines let in, by their roles and by what the config has: who talks to whom, and nobody else."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest

from stacks.phases.node import of_node
from tests.unit.configs import adopted, host, lab, planned

Edits = Mapping[str, object]
MACHINES, PODS, SSH, API = "10.92.0.0/24", "10.244.0.0/16", "10.1.0.0/24", "10.2.0.0/24"
SAID = {"networks": [MACHINES], "sshFrom": [SSH, "10.92.0.1/32"], "apiFrom": [API]}
VIP: Edits = {"frontDoors.vip": {"address": "10.92.0.5"}}
EDGES: Edits = {**VIP, "pools.edge": {"roles": ["loadbalancer"], "count": 2}}
SEPARATE: Edits = {"pools.etcd": {"roles": ["etcd"], "count": 3}, "pools.master.roles": ["master"]}
TLS: Edits = {"frontDoors.ingress": {"hosts": ["shop.example.com"]}}
CALICO: Edits = {"network.plugin": "calico"}
NODE_PORTS = "30000-32767"


def rules(edits: Edits, name: str, said: Edits | None = None) -> str:
    plan = planned(lab({"machines.firewall": {**SAID, **(said or {})}, **edits}))
    return of_node(plan, plan.node(name))["FIREWALL"]


def ports(text: str, source: str, protocol: str = "tcp") -> set[str]:
    """What connections from a network may go to; of a protocol without ports, whether."""
    found = set()
    for line in text.splitlines():
        whom = re.match(r"ip saddr (?:\{ (.*?) \}|(\S+)) ", line)
        listed = (whom[1] or whom[2]).split(", ") if whom else ["anybody"]
        if source in listed and (
            span := re.search(rf"{protocol} (?:dport )?(?:\{{ (.*?) \}}|(\S+)) accept", line)
        ):
            found |= {*(span[1] or span[2]).split(", ")}
    return found


@pytest.mark.parametrize(
    ("edits", "name", "machines", "pods", "api"),
    [
        ({}, "master-1", {"22", "2379-2380", "6443", "10250", NODE_PORTS}, {"6443", "10250", NODE_PORTS}, {"6443"}),
        ({}, "worker-1", {"10250", NODE_PORTS}, {"10250", NODE_PORTS}, set()),
        (SEPARATE, "etcd-1", {"22", "2379-2380"}, set(), set()),
        (SEPARATE, "master-1", {"22", "6443", "10250", NODE_PORTS}, {"6443", "10250", NODE_PORTS}, {"6443"}),
        (VIP, "master-1", {"22", "2379-2380", "6443", "8443", "10250", NODE_PORTS}, {"6443", "8443", "10250", NODE_PORTS}, {"6443", "8443"}),
        (EDGES, "edge-1", {"8443"}, {"8443"}, {"8443"}),
        (EDGES, "worker-1", {"10250", NODE_PORTS}, {"10250", NODE_PORTS}, set()),
        (CALICO, "worker-1", {"179", "10250", NODE_PORTS}, {"10250", NODE_PORTS}, set()),
        (CALICO, "master-1", {"22", "179", "2379-2380", "5473", "6443", "10250", NODE_PORTS}, {"6443", "10250", NODE_PORTS}, {"6443"}),
        ({"controlPlane.apiServerArgs": {"service-node-port-range": "20000-20100"}}, "worker-1", {"10250", "20000-20100"}, {"10250", "20000-20100"}, set()),
        ({"addons": {"metallb": {"addresses": ["10.92.0.250"]}}}, "worker-1", {"7946", "10250", NODE_PORTS}, {"10250", NODE_PORTS}, set()),
        ({"network.plugin": "none", "network.mtu": 1400, "network.own": {"ports": [{"protocol": "tcp", "port": 4240}]}}, "worker-1", {"4240", "10250", NODE_PORTS}, {"10250", NODE_PORTS}, set()),
    ],
)  # fmt: skip
def test_a_machine_lets_in_what_its_roles_need(
    edits: Edits, name: str, machines: set[str], pods: set[str], api: set[str]
) -> None:
    text = rules(edits, name)
    assert ports(text, MACHINES) == machines
    assert ports(text, PODS) == pods
    assert ports(text, API) == api
    assert ports(text, SSH) == {"22"}
    assert ports(text, "anybody") == set()
    assert len(text) < 700, "with one network of each kind it fits beside all else"


def test_pods_of_the_machine_itself_put_no_packets_into_tunnels() -> None:
    text = rules({}, "worker-1")
    assert ports(text, MACHINES, "udp") == {"8472", NODE_PORTS}
    assert ports(text, PODS, "udp") == {NODE_PORTS}


def test_another_backend_of_a_network_meets_its_ports_open() -> None:
    ways = [rules({**CALICO, "network.backend": way}, "worker-1") for way in ("vxlan", "bgp")]
    assert ways[0] == ways[1]


def test_those_that_had_the_vip_hear_those_who_are_to_have_it() -> None:
    for edits in ({}, VIP, EDGES):
        assert ports(rules(edits, "master-1"), MACHINES, "ip protocol") == {"112"}
    assert ports(rules(EDGES, "edge-1"), MACHINES, "ip protocol") == {"112"}
    assert ports(rules(EDGES, "worker-1"), MACHINES, "ip protocol") == set()


def test_visitors_of_the_ingress_tier_come_from_everywhere() -> None:
    assert ports(rules({**EDGES, **TLS}, "edge-1"), "anybody") == {"80", "443"}
    # Also where it may be just now, and ends later.
    assert ports(rules({**EDGES, **TLS}, "master-1"), "anybody") == {"80", "443"}
    assert ports(rules({**EDGES, **TLS}, "worker-1"), "anybody") == set()


def test_a_network_of_which_nothing_is_known_gets_everything_from_machines() -> None:
    assert (
        f"ip saddr {MACHINES} accept" in rules({"network.plugin": "none"}, "worker-1").splitlines()
    )
    assert (
        f"ip saddr {MACHINES} accept"
        not in rules({"network.plugin": "none", **SEPARATE}, "etcd-1").splitlines()
    )


def test_routers_outside_may_speak_bgp() -> None:
    peers = {
        **CALICO,
        "network.backend": "bgp",
        "network.bgpPeers": [{"address": "192.0.2.1", "asNumber": 65001}],
    }
    assert ports(rules(peers, "worker-1"), "192.0.2.1/32") == {"179"}


def test_what_is_said_beside_is_let_in_on_every_machine() -> None:
    more = [
        {"protocol": "tcp", "ports": "9100-9110", "from": ["10.3.0.0/24"]},
        {"protocol": "tcp", "ports": 9105, "from": ["10.3.0.0/24"]},
        {"protocol": "udp"},
    ]
    text = rules(SEPARATE, "etcd-1", {"more": more})
    assert ports(text, "10.3.0.0/24") == {"9100-9110"}
    assert ports(text, "anybody", "udp") == {"1-65535"}


def test_networks_within_others_are_not_listed_twice() -> None:
    text = rules({}, "master-1", {"apiFrom": ["10.2.0.0/16", "10.2.3.0/24", "10.4.0.0/16"]})
    assert "ip saddr { 10.2.0.0/16, 10.4.0.0/16 } tcp dport 6443 accept" in text.splitlines()
    assert ports(rules({}, "master-1", {"apiFrom": ["10.2.0.0/16", "0.0.0.0/0"]}), "anybody") == {
        "6443"
    }


def test_ssh_is_at_the_port_that_the_machine_has_for_it() -> None:
    said = {"networks": ["192.0.2.0/24"], "sshFrom": [SSH], "apiFrom": []}
    plan = planned(adopted({"machines.firewall": said, "pools.master.hosts.0.port": 2222}))
    for name, port in (("master-1", "2222"), ("master-2", "22")):
        text = of_node(plan, plan.node(name))["FIREWALL"]
        assert ports(text, SSH) == {port}
        assert port in ports(text, "192.0.2.0/24")


def test_a_machine_that_comes_within_the_networks_changes_no_others_values() -> None:
    said = {"machines.firewall": {"networks": ["192.0.2.0/24"], "sshFrom": [SSH], "apiFrom": [API]}}
    before = planned(adopted(said))
    for pool, names in (("worker", ("master-1", "worker-1")), ("master", ("worker-1",))):
        hosts = [host(pool, number) for number in (1, 2, 3, 4)]
        after = planned(adopted({**said, f"pools.{pool}.hosts": hosts}))
        for name in names:
            was, now = (of_node(plan, plan.node(name))["FIREWALL"] for plan in (before, after))
            assert was == now


def test_machines_without_kubernetes_get_the_program_and_stacks_without_a_firewall_nothing() -> (
    None
):
    wanted = planned(lab({"machines.firewall": SAID, **SEPARATE}))
    assert "nftables" in of_node(wanted, wanted.node("etcd-1"))["PACKAGES"].split()
    without = planned(lab(SEPARATE))
    assert "nftables" not in of_node(without, without.node("etcd-1"))["PACKAGES"].split()
    assert not any("FIREWALL" in of_node(without, node) for node in without.nodes)
