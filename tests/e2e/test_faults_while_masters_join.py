"""Story: everything goes wrong while two masters join; clients feel nothing, and each time a plain up continues."""

from __future__ import annotations

from tests.e2e.harness import config, pods
from tests.e2e.harness.assertions import assert_sound
from tests.e2e.harness.faults import broken_connection, engine_death, full_disk
from tests.e2e.harness.load import Load
from tests.e2e.harness.stack import Stack
from tests.e2e.harness.waiting import wait_for

NAME = "test-faults"


def wanted() -> config.Config:
    return config.lab(NAME, "10.93.25.0/24", masters=1, workers=1)


def test_masters_join_through_faults(stack: Stack) -> None:
    stack.up()
    pods.deploy(stack)
    second, third = stack.node("master-2"), stack.node("master-3")
    stack.edit("pools.master.count", 3)
    with (
        Load(stack, "while masters join") as load,
        pods.untouched(stack, {"master-1", "worker-1"}),
    ):
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
    load.assert_unharmed()


def test_what_is_left_is_sound(stack: Stack) -> None:
    assert_sound(stack)
