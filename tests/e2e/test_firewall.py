"""Story: machines filter what comes to them from the first day on: strangers reach nothing, what would lock somebody out is refused, a worker comes and goes."""

from __future__ import annotations

import pytest

from tests.e2e.harness import config
from tests.e2e.harness.assertions import assert_acceptance, assert_up_changes_nothing
from tests.e2e.harness.node import Node
from tests.e2e.harness.operations import drifted
from tests.e2e.harness.stack import Stack

NET = "10.93.149"
# Masters have .11 to .13, workers .101 and on; this computer .1, the mirror .2, which is a stranger here.
FIREWALL = {
    "networks": [f"{NET}.8/29", f"{NET}.96/27"],
    "sshFrom": [f"{NET}.1/32"],
    "apiFrom": [f"{NET}.1/32"],
}
NODES = {"master-1": 11, "master-2": 12, "master-3": 13, "worker-1": 101, "worker-2": 102}
# SSH, etcd, the API, kubelet, scheduler, what kube-proxy tells load balancers of a cloud.
PORTS = (22, 2379, 2380, 6443, 10250, 10256, 10259)


def wanted() -> config.Config:
    made = config.lab("test-firewall", f"{NET}.0/24", masters=3, workers=2)
    made["machines"]["firewall"] = {**FIREWALL}
    return made


@pytest.fixture(scope="module")
def cluster(stack: Stack) -> Stack:
    update = stack.up()
    stack.took("up of 3+2 with a firewall on every machine", update.seconds)
    return stack


def reached(source: Node, number: int) -> set[int]:
    """Ports of the machine with that number that let in a connection."""
    dialled = "".join(
        f"(timeout 3 bash -c '</dev/tcp/{NET}.{number}/{port}' 2>/dev/null && echo {port}) &\n"
        for port in PORTS
    )
    return {int(port) for port in source.run(f"{dialled}wait").split()}


def tables(stack: Stack) -> dict[str, str]:
    return {
        node.name: node.run("nft -s list table inet kube-ha-firewall")
        for node in stack.nodes()
        if node.name != "mirror"
    }


def test_the_cluster_works(cluster: Stack) -> None:
    assert cluster.ready() == dict.fromkeys(NODES, True)
    assert_acceptance(cluster)  # pods, Services and DNS, from every node
    assert drifted(cluster) == []
    assert_up_changes_nothing(cluster)


def test_strangers_reach_nothing_and_machines_what_they_need(cluster: Stack) -> None:
    mirror = cluster.node("mirror")
    assert not {name for name, number in NODES.items() if reached(mirror, number)}
    worker, master = cluster.node("worker-1"), cluster.node("master-1")
    assert reached(worker, NODES["master-1"]) == {22, 2379, 2380, 6443, 10250}
    assert reached(worker, NODES["worker-2"]) == {10250}
    assert reached(master, NODES["worker-2"]) == {10250}
    # This computer: it has just asked the API, and logged in.
    assert cluster.kubectl("get", "--raw", "/readyz", context=f"{cluster.lab}-master-2") == "ok"


@pytest.mark.parametrize(
    ("key", "networks", "told"),
    [
        ("sshFrom", ["192.0.2.0/24"], f"has no network with {NET}.1, this computer"),
        ("networks", [f"{NET}.8/29"], "has no network with the address of worker-1, worker-2"),
    ],
)
def test_a_config_that_locks_somebody_out_is_refused(
    cluster: Stack, key: str, networks: list[str], told: str
) -> None:
    cluster.edit(f"machines.firewall.{key}", networks)
    update = cluster.up(fails=True)
    cluster.edit(f"machines.firewall.{key}", FIREWALL[key])
    assert told in update.output
    assert update.ssh_connections == []


def test_a_worker_comes_and_goes_and_no_others_rules_change(cluster: Stack) -> None:
    before = tables(cluster)
    cluster.edit("pools.worker.count", 3)
    update = cluster.up()
    cluster.took("up that adds a worker", update.seconds)
    assert not [
        name for name in update.changes if name.endswith("-node") and "worker-3" not in name
    ]
    assert cluster.ready() == dict.fromkeys([*NODES, "worker-3"], True)
    assert reached(cluster.node("mirror"), 103) == set()
    assert reached(cluster.node("worker-3"), 11) == {22, 2379, 2380, 6443, 10250}
    assert_acceptance(cluster)
    now = tables(cluster)
    assert now.pop("worker-3") == before["worker-1"]
    assert now == before
    cluster.edit("pools.worker.count", 2)
    cluster.up()
    assert tables(cluster) == before
    assert_up_changes_nothing(cluster)
