"""What preflight is told to look for on a machine."""

from __future__ import annotations

import pytest

from stacks.cluster import artifacts
from stacks.phases import preflight
from tests.unit.configs import adopted, host, lab, planned


@pytest.mark.parametrize(
    ("plugin", "backend", "wanted"),
    [
        ("flannel", "vxlan", "1"),
        ("flannel", "host-gw", ""),
        ("none", None, ""),
    ],
)
def test_vxlan_is_needed_by_flannel_with_that_backend_alone(
    plugin: str, backend: str | None, wanted: str
) -> None:
    said = {"backend": backend} if backend else {}
    plan = planned(adopted({"network": {"plugin": plugin, **said}}))
    files = artifacts.files(plan, "amd64")
    assert preflight.preflight(plan, plan.workers[0], files)["VXLAN"] == wanted


def test_ports_of_the_roles_have_to_be_free() -> None:
    plan = planned(adopted())
    files = artifacts.files(plan, "amd64")
    node = "3446 10248 10249 10250 10256"
    assert preflight.preflight(plan, plan.workers[0], files)["PORTS"] == node
    assert preflight.preflight(plan, plan.masters[0], files)["PORTS"] == (
        "2379 2380 2381 3446 6443 10248 10249 10250 10256 10257 10259"
    )


def test_a_load_balancer_dials_nothing_but_the_api() -> None:
    pools = {
        "pools.master.roles": ["master"],
        "pools.etcd": {"roles": ["etcd"], "hosts": [host("etcd", 1)]},
        "pools.edge": {"roles": ["loadbalancer"], "hosts": [host("edge", 1), host("edge", 2)]},
    }
    plan = planned(adopted(pools | {"frontDoors.vip": {"address": "192.0.2.5"}}))
    files = artifacts.files(plan, "amd64")
    peers = [preflight.preflight(plan, node, files)["PEERS"] for node in plan.load_balancers]
    assert peers == [" ".join(f"{node.address}:6443" for node in plan.masters)] * 2


@pytest.mark.parametrize(
    ("network", "wanted"),
    [
        ({}, ""),
        ({"mtu": 8900}, "8950"),  # vxlan's headers come on top
        ({"mtu": 8900, "backend": "host-gw"}, "8900"),
    ],
)
def test_an_interface_has_to_take_the_packets_of_pods(
    network: dict[str, object], wanted: str
) -> None:
    plan = planned(adopted({"network": network}))
    files = artifacts.files(plan, "amd64")
    assert preflight.preflight(plan, plan.workers[0], files)["MTU"] == wanted


@pytest.mark.parametrize(
    ("name", "settled", "peers", "enough"),
    [
        ("worker-1", ["master-1", "master-2", "master-3"], "6443 6443 6443", "2"),
        ("worker-1", ["master-1"], "6443", "1"),
        ("master-3", ["master-1", "master-2"], "6443 6443 2380 2380", "3"),
        ("worker-1", [], "22 22 22", None),
        ("worker-1", ["worker-2"], "22 22 22", None),
    ],
)
def test_who_joins_a_cluster_that_lives_has_to_reach_most_of_its_masters(
    name: str, settled: list[str], peers: str, enough: str | None
) -> None:
    """A master that waits for a part must not keep workers from joining, nor need SSH be open between machines."""
    plan = planned(lab())
    node = plan.node(name)
    told = preflight.preflight(plan, node, artifacts.files(plan, "amd64"), settled=settled)
    assert " ".join(peer.partition(":")[2] for peer in told["PEERS"].split()) == peers
    assert told.get("PEERS_ENOUGH") == enough


def test_where_ssh_goes_another_way_a_machine_that_refuses_it_has_been_reached() -> None:
    apart = {"pools.master.hosts.0.sshAddress": "master-1.example.com"}
    plan = planned(adopted(apart))
    told = preflight.preflight(plan, plan.workers[0], artifacts.files(plan, "amd64"))
    assert told["PEERS"] == "192.0.2.11:22 192.0.2.12:22 192.0.2.13:22"
    assert told["PEERS_ENOUGH"] == "3"
