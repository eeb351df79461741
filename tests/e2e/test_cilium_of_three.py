"""Story: three masters with Cilium: a worker more, a patch of Kubernetes up, a master replaced, a master dead; clients go on and policies hold all the time."""

from __future__ import annotations

import pytest

from tests.e2e.harness import config, policed, versions
from tests.e2e.harness.assertions import assert_sound
from tests.e2e.harness.load import Load
from tests.e2e.harness.operations import operation
from tests.e2e.harness.stack import Stack
from tests.e2e.harness.waiting import wait_for

SUBNET = "10.93.145.0/24"
OLD = "1.36.1"
MASTERS = {"master-1", "master-2", "master-3"}
WORKERS = ("worker-1", "worker-2")


def wanted() -> config.Config:
    made = config.lab("test-cilium-three", SUBNET, masters=3, workers=1)
    made["cluster"]["kubernetes"] = OLD
    return versions.with_network_and_older_ones(made, SUBNET, "cilium")


@pytest.fixture(scope="module")
def cluster(stack: Stack) -> Stack:
    update = stack.up()
    stack.took("up of 3+1 with Cilium", update.seconds)
    policed.deploy(stack)
    policed.deny_all(stack)
    policed.allow_friends(stack)
    wait_for(
        "strangers do not pass",
        lambda: policed.none_passes(policed.answers(stack, "stranger", ["worker-1"])),
        limit_s=60,
    )
    policed.dial_on(stack, "worker-1", policed.SERVICE)
    return stack


def test_a_worker_more(cluster: Stack) -> None:
    cluster.edit("pools.worker.count", 2)
    _up(cluster, "a worker joins")
    policed.wait_running(cluster)
    _assert_policed(cluster)


def test_a_patch_of_kubernetes(cluster: Stack) -> None:
    cluster.edit("cluster.kubernetes", config.kubernetes())
    _up(cluster, "a patch of Kubernetes")
    nodes = {*MASTERS, *WORKERS}
    assert versions.of_kubelets(cluster) == dict.fromkeys(nodes, f"v{config.kubernetes()}")
    _assert_policed(cluster)


def test_a_master_is_replaced(cluster: Stack) -> None:
    cluster.set_nodes({"master-2": {"generation": 2}})
    _up(cluster, "a master is replaced")
    _assert_policed(cluster)


def test_a_master_dies_and_is_recreated(cluster: Stack) -> None:
    dead = "master-3"
    cluster.make_leader(dead)
    with Load(cluster, "a master dies, with Cilium") as load:
        cluster.node(dead).kill()
        wait_for("it is called NotReady", lambda: _ready(cluster, dead), limit_s=120)
        _assert_policed(cluster)
    load.assert_served_again(within_ms=15_000)
    cluster.set_nodes({"master-2": {"generation": 2}, dead: {"generation": 2}})
    _up(cluster, "a dead master is recreated")
    cluster.wait_healthy({*MASTERS, *WORKERS}, limit_s=90)
    _assert_policed(cluster)


def test_no_stranger_was_ever_let_in_and_friends_were(cluster: Stack) -> None:
    passed, failed = policed.dialled(cluster, "friend")
    cluster.measured(
        f"all the while: {passed} of {passed + failed} new connections of a friend to a Service"
    )
    assert policed.dialled(cluster, "stranger")[0] == 0, "a stranger was let in"
    assert failed * 100 < passed, f"{failed} of a friend's connections failed, {passed} did not"
    assert "everything is as planned" in operation(cluster, "drift")
    assert_sound(cluster)


def _up(cluster: Stack, what: str) -> None:
    with Load(cluster, f"{what}, with Cilium") as load:
        update = cluster.up()
    cluster.took(f"{what}, with Cilium", update.seconds)
    load.assert_unharmed()


def _ready(cluster: Stack, name: str) -> str:
    """Empty once it is not."""
    return "it is Ready" if cluster.ready().get(name) else ""


def _assert_policed(cluster: Stack) -> None:
    nodes = sorted(policed.pods(cluster, "server"))
    wait_for(
        "friends pass",
        lambda: policed.all_pass(policed.answers(cluster, "friend", nodes)),
        limit_s=60,
    )
    assert not policed.none_passes(policed.answers(cluster, "stranger", nodes))
