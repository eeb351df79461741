"""Story: with Cilium a master of three is replaced, then another one dies and is recreated; clients go on and policies hold."""

from __future__ import annotations

import pytest

from tests.e2e.harness import config, policed, versions
from tests.e2e.harness.assertions import assert_sound
from tests.e2e.harness.load import Load
from tests.e2e.harness.stack import Stack
from tests.e2e.harness.waiting import wait_for

SUBNET = "10.93.148.0/24"
NODES = {"master-1", "master-2", "master-3", "worker-1", "worker-2"}
REPLACED, DEAD = "master-2", "master-3"
_SERVED_AGAIN_MS = 15_000


def wanted() -> config.Config:
    made = config.lab("test-cilium-masters", SUBNET, masters=3, workers=2)
    return versions.with_network(made, SUBNET, "cilium")


@pytest.fixture(scope="module")
def cluster(stack: Stack) -> Stack:
    stack.up()
    policed.begin(stack)
    return stack


def test_a_master_is_replaced(cluster: Stack) -> None:
    cluster.set_nodes({REPLACED: {"generation": 2}})
    with Load(cluster, "a master is replaced, with Cilium") as load:
        update = cluster.up()
    cluster.took("a master is replaced, with Cilium", update.seconds)
    load.assert_unharmed()
    policed.assert_hold(cluster)


def test_a_master_dies(cluster: Stack) -> None:
    cluster.make_leader(DEAD)
    with Load(cluster, "a master dies, with Cilium") as load:
        cluster.node(DEAD).kill()
        wait_for("it is called NotReady", lambda: _ready(cluster), limit_s=120)
        policed.assert_hold(cluster)
    load.assert_served_again(within_ms=_SERVED_AGAIN_MS)


def test_it_is_recreated(cluster: Stack) -> None:
    cluster.set_nodes({REPLACED: {"generation": 2}, DEAD: {"generation": 2}})
    with Load(cluster, "a dead master is recreated, with Cilium") as load:
        update = cluster.up()
    cluster.took("a dead master is recreated, with Cilium", update.seconds)
    load.assert_unharmed()
    cluster.wait_healthy(NODES, limit_s=90)
    policed.assert_hold(cluster)
    policed.assert_held(cluster)
    assert_sound(cluster)


def _ready(cluster: Stack) -> str:
    """Empty once the dead one is not."""
    return "it is Ready" if cluster.ready().get(DEAD) else ""
