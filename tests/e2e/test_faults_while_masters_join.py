"""Story: everything goes wrong while two masters join; clients feel nothing, and each time a plain up goes on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e import config, pods
from tests.e2e.assertions import assert_sound
from tests.e2e.faults import broken_connection, engine_death, full_disk
from tests.e2e.load import Load
from tests.e2e.stack import Stack
from tests.e2e.waiting import wait_for

NAME = "test-faults"


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    wanted = config.lab(NAME, "10.93.25.0/24", masters=1, workers=1)
    with Stack("faults_while_masters_join", wanted) as stack:
        yield stack


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
