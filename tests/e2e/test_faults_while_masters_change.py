"""Story: everything goes wrong while two masters join and the bootstrap one leaves; clients feel nothing, and each time a plain up goes on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e import config, pods
from tests.e2e.assertions import assert_no_trace, assert_sound
from tests.e2e.faults import broken_connection, engine_death, full_disk
from tests.e2e.load import Load
from tests.e2e.stack import Stack
from tests.e2e.waiting import wait_for

NAME = "test-faults"
SUBNET = "10.93.25"


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    wanted = config.lab(NAME, f"{SUBNET}.0/24", masters=1, workers=1)
    with Stack("faults_while_masters_change", wanted) as stack:
        yield stack


@pytest.fixture(scope="module")
def load(stack: Stack) -> Iterator[Load]:
    """Runs from the first fault to the last."""
    stack.up()
    pods.deploy(stack)
    with Load(stack, "while masters change") as load:
        yield load


def test_masters_join_through_faults(stack: Stack, load: Load) -> None:
    second, third = stack.node("master-2"), stack.node("master-3")
    stack.edit("pools.master.count", 3)
    with pods.untouched(stack, {"master-1", "worker-1"}):
        engine_death(stack, resource=f"{NAME}-master-3-preflight")
        with full_disk(third, "/var/lib/kube-ha/cache"):
            failed = stack.up(fails=True)
        assert "ERROR master-3: cannot download" in failed.tail()
        assert "make room in /var/lib/kube-ha/cache (0 left)" in failed.tail()

        # A learner that nobody promotes holds up nothing, and is the same one later.
        engine_death(stack, resource=f"{NAME}-master-2-etcd", until=lambda: second.runs("etcd"))
        update = stack.start_up()
        wait_for(
            "kubeadm on master-2",
            lambda: "" if second.runs("kubeadm") else "not yet",
            limit_s=200,
            every_s=0.1,
        )
        broken_connection(second, "master")
        assert update.end() != 0, update.tail()
        stack.up()
    load.read_kubeconfig_again()
    stack.wait_healthy({"master-1", "master-2", "master-3", "worker-1"}, limit_s=30)


def test_bootstrap_master_leaves_through_faults(stack: Stack, load: Load) -> None:
    second = stack.node("master-2")
    stack.set_nodes({"master-1": {"state": "removed"}})

    def removed() -> bool:
        return ", master-1, " not in second.etcdctl("member list -w simple")

    with pods.untouched(stack, {"master-2", "master-3", "worker-1"}):
        engine_death(stack, resource=f"{NAME}-nodes", until=removed)
        update = stack.up()
        load.read_kubeconfig_again()
    stack.measured(f"the up after that: {update.seconds:.0f} s")
    stack.wait_healthy({"master-2", "master-3", "worker-1"}, limit_s=30)
    assert_no_trace(stack, [f"{SUBNET}.11"])


def test_clients_felt_nothing(stack: Stack, load: Load) -> None:
    load.end()
    load.assert_unharmed()
    assert_sound(stack, gone=[f"{SUBNET}.11"])
