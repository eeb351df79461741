"""What machines let in, by their roles and by what the config has: who talks to whom, and nobody else."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest

from stacks.render import firewall
from tests.unit.configs import GONE, adopted, host, lab, planned

Edits = Mapping[str, object]
ON: Edits = {"machines.firewall": {}}
VIP: Edits = {"frontDoors.vip": {"address": "10.92.0.5"}}
EDGES: Edits = {**VIP, "pools.edge": {"roles": ["loadbalancer"], "count": 2}}
SEPARATE: Edits = {"pools.etcd": {"roles": ["etcd"], "count": 3}, "pools.master.roles": ["master"]}
TLS: Edits = {"frontDoors.ingress": {"hosts": ["shop.example.com"]}}
ANYWHERE = {"icmp", "dhcp"}


def rules(edits: Edits, name: str, *, adopt: bool = False) -> str:
    plan = planned((adopted if adopt else lab)({**ON, **edits}))
    return firewall.rules(plan, plan.node(name))


def named(text: str) -> set[str]:
    """Rules of a machine, by the names of docs/reference/ports.md."""
    return set(re.findall(r'accept comment "(.+)"', text)) - ANYWHERE


def lines(text: str, name: str) -> list[str]:
    return re.findall(rf'^ +(.*) accept comment "{name}"$', text, re.MULTILINE)


def members(text: str, group: str) -> str:
    [found] = re.findall(rf"set {group} {{ .* elements = {{ (.*) }}; }}", text)
    return str(found)


_NODE = {"ssh", "kubelet", "kubelet-nodes", "node-ports", "node-ports-udp", "vxlan"}
_MASTER = {*_NODE, "api", "api-pods", "api-clients", "ssh-peers"}


@pytest.mark.parametrize(
    ("edits", "name", "found"),
    [
        ({}, "master-1", {*_MASTER, "etcd"}),
        ({}, "worker-1", _NODE),
        (SEPARATE, "master-1", _MASTER),
        (SEPARATE, "etcd-1", {"ssh", "etcd", "ssh-peers"}),
        (VIP, "master-1", {*_MASTER, "etcd", "vrrp"}),
        (EDGES, "master-1", {*_MASTER, "etcd", "api-vip"}),
        (EDGES, "edge-1", {"ssh", "api-clients", "vrrp"}),
        ({**EDGES, **TLS}, "edge-1", {"ssh", "api-clients", "vrrp", "ingress"}),
        ({**EDGES, **TLS}, "worker-1", {*_NODE, "ingress"}),
        ({"network.plugin": "cilium"}, "worker-1", _NODE),
        ({"network.backend": "host-gw"}, "worker-1", _NODE - {"vxlan"}),
        ({"network.plugin": "calico", "network.backend": "bgp"}, "worker-1", {*_NODE, "bgp"} - {"vxlan"}),
        ({"network.plugin": "calico", "network.typha": True}, "master-1", {*_MASTER, "etcd", "typha"}),
        ({"network.plugin": "none"}, "worker-1", {*_NODE, "nodes-all"} - {"vxlan"}),
        (
            {"network.plugin": "none", "network.mtu": 1400, "network.own": {"ports": [{"protocol": "udp", "port": 51820}]}},
            "worker-1",
            {*_NODE, "own-udp-51820"} - {"vxlan"},
        ),
        ({"frontDoors.etcd": {"pools": ["worker"]}}, "master-1", {*_MASTER, "etcd", "etcd-door"}),
        ({"addons": {"metallb": {"addresses": ["10.92.0.250"]}}}, "worker-1", {*_NODE, "metallb", "metallb-udp"}),
    ],
)  # fmt: skip
def test_a_machine_lets_in_what_its_roles_need(edits: Edits, name: str, found: set[str]) -> None:
    assert named(rules(edits, name)) == found


def test_machines_are_known_by_their_addresses_those_that_count_as_one_range() -> None:
    text = rules({}, "master-1")
    assert members(text, "master") == members(text, "etcd") == "10.92.0.11-10.92.0.13"
    assert members(text, "node") == "10.92.0.11-10.92.0.13, 10.92.0.101-10.92.0.102"
    assert members(rules({"pools.worker.count": 1}, "worker-1"), "node").endswith(", 10.92.0.101")


def test_who_is_absent_stays_known_and_who_is_lost_does_not() -> None:
    absent = rules({"nodes": {"worker-2": {"state": "absent"}}}, "master-1")
    assert members(absent, "node").endswith("10.92.0.101-10.92.0.102")
    lost = rules({"nodes": {"worker-2": {"state": "lost"}}}, "master-1")
    assert members(lost, "node").endswith("10.92.0.101")


def test_members_of_etcd_let_in_masters_and_each_other_and_no_worker() -> None:
    assert lines(rules(SEPARATE, "etcd-1"), "etcd") == [
        "ip saddr @etcd tcp dport 2379-2380",
        "ip saddr @master tcp dport 2379-2380",
    ]


def test_nobody_is_locked_out_by_what_is_not_said() -> None:
    text = rules({}, "master-1")
    assert lines(text, "ssh") == ["tcp dport 22"]
    assert lines(text, "api-clients") == ["tcp dport 6443"]
    assert text.count("drop") == 1
    assert text.index("ct state established,related accept") < text.index("counter drop")


def test_networks_that_are_said_are_let_in_alone_beside_machines_and_pods() -> None:
    said = {"sshFrom": ["10.1.0.0/16"], "apiFrom": ["10.2.0.0/16", "10.2.3.0/24", "10.4.0.0/16"]}
    text = rules({**VIP, "machines.firewall": said}, "master-1")
    assert lines(text, "ssh") == ["ip saddr { 10.1.0.0/16 } tcp dport 22"]
    assert lines(text, "ssh-peers") == ["ip saddr @machine tcp dport 22"]
    api = "ip saddr { 10.2.0.0/16, 10.4.0.0/16 } tcp dport"
    assert lines(text, "api-clients") == [f"{api} 6443", f"{api} 8443"]
    assert lines(text, "vip") == [
        "ip saddr @machine tcp dport 8443",
        "ip saddr 10.244.0.0/16 tcp dport 8443",
    ]
    assert lines(text, "api-pods") == ["ip saddr 10.244.0.0/16 tcp dport 6443"]
    wide = {"machines.firewall": {"apiFrom": ["10.2.0.0/16", "0.0.0.0/0"]}}
    assert lines(rules(wide, "master-1"), "api-clients") == ["tcp dport 6443"]


def test_ssh_is_at_the_port_that_the_machine_has_for_it() -> None:
    pools = {"pools.master.hosts.0.port": 2222}
    text = rules({**pools, "machines.ssh": {"agent": True}}, "master-1", adopt=True)
    assert lines(text, "ssh") == ["tcp dport 2222"]
    assert lines(text, "ssh-peers") == ["ip saddr @machine tcp dport 2222"]


def test_more_is_let_in_on_every_machine() -> None:
    more = [
        {"protocol": "tcp", "ports": "9100-9110", "from": ["10.1.0.0/16"]},
        {"protocol": "udp"},
        {"protocol": "vrrp"},
    ]
    text = rules({**SEPARATE, "machines.firewall": {"more": more}}, "etcd-1")
    assert lines(text, "more") == [
        "ip saddr { 10.1.0.0/16 } tcp dport 9100-9110",
        "udp dport 1-65535",
        "ip protocol 112",
    ]


def test_who_moves_the_vip_by_means_of_their_own_may_speak_vrrp() -> None:
    own = {"frontDoors.vip": {"address": "10.92.0.5", "failover": "own"}}
    assert lines(rules(own, "master-1"), "vrrp") == ["ip saddr @master ip protocol 112"]


def test_another_range_of_node_ports_and_another_kind_of_machine() -> None:
    other = {"controlPlane.apiServerArgs": {"service-node-port-range": "20000-20100"}}
    assert lines(rules(other, "worker-1"), "node-ports") == ["ip saddr @node tcp dport 20000-20100"]
    routers = {"network.plugin": "calico", "network.backend": "bgp"}
    peers = {"network.bgpPeers": [{"address": "192.0.2.1", "asNumber": 65001}]}
    assert lines(rules({**routers, **peers}, "worker-1"), "bgp") == [
        "ip saddr @node tcp dport 179",
        "ip saddr { 192.0.2.1/32 } tcp dport 179",
    ]


def test_an_address_that_is_added_changes_one_element_of_each_set() -> None:
    hosts = [host("worker", i) for i in (1, 2, 5)]
    text = rules({"pools.worker.hosts": hosts}, "master-1", adopt=True)
    before = rules({}, "master-1", adopt=True)
    changed = [
        one for one in zip(before.splitlines(), text.splitlines(), strict=True) if one[0] != one[1]
    ]
    assert [new.split()[1] for _, new in changed] == ["machine", "node"]
    assert "192.0.2.105" in changed[0][1]


def test_the_unit_loads_the_file_before_networks_are_up() -> None:
    unit = firewall.unit()
    assert f"ExecStart=/usr/sbin/nft -f {firewall.RULES}\n" in unit
    assert "Before=network-pre.target\n" in unit
    assert "nftables.service" in unit.partition("[Service]")[0]


def test_without_load_balancers_workers_alone_are_no_masters() -> None:
    text = rules({"pools.worker": GONE}, "master-1")
    assert "set loadbalancer" not in text
    assert "set machine" in text
