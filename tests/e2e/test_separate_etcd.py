"""Story: etcd on machines of its own, by config alone: 3 etcd members, 2 masters, 1 worker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e import config
from tests.e2e.assertions import assert_up_changes_nothing
from tests.e2e.stack import Stack

NODES = {"master-1", "master-2", "worker-1"}


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    wanted = config.separate_etcd("test-separate", "10.93.5.0/24", etcd=3, masters=2, workers=1)
    with Stack("separate_etcd", wanted) as stack:
        yield stack


def test_up_ends_with_a_healthy_cluster(stack: Stack) -> None:
    update = stack.up()
    stack.measured(f"up of 3 etcd machines, 2 masters, 1 worker: {update.seconds:.0f} s")
    stack.wait_healthy(NODES, limit_s=30)
    assert {node.name for node in stack.members()} == {"etcd-1", "etcd-2", "etcd-3"}
    for name in ("etcd-1", "etcd-2", "etcd-3"):
        assert not stack.node(name).runs("kubelet")


def test_second_up_changes_nothing(stack: Stack) -> None:
    assert_up_changes_nothing(stack)


def test_death_of_an_etcd_machine_is_survived(stack: Stack) -> None:
    victim = stack.node("etcd-1")
    victim.kill()
    stack.kubectl("create", "configmap", "written-with-two-members")
    victim.start()
    stack.wait_healthy(NODES)
