"""Story: etcd on machines of its own, by config alone: 3 etcd members, 2 masters, 1 worker."""

from __future__ import annotations

from tests.e2e.harness import config
from tests.e2e.harness.assertions import assert_up_changes_nothing
from tests.e2e.harness.lab import LabError
from tests.e2e.harness.load import Load
from tests.e2e.harness.stack import Stack
from tests.e2e.harness.waiting import wait_for

ANSWERS_AGAIN_MS = 10_000  # an election, and what waited for it
NODES = {"master-1", "master-2", "worker-1"}


def wanted() -> config.Config:
    return config.separate_etcd("test-separate", "10.93.5.0/24", etcd=3, masters=2, workers=1)


def test_up_ends_with_a_healthy_cluster(stack: Stack) -> None:
    update = stack.up()
    stack.took("up of 3 etcd machines, 2 masters, 1 worker", update.seconds)
    stack.wait_healthy(NODES, limit_s=30)
    assert {node.name for node in stack.members()} == {"etcd-1", "etcd-2", "etcd-3"}
    for name in ("etcd-1", "etcd-2", "etcd-3"):
        assert not stack.node(name).runs("kubelet")


def test_second_up_changes_nothing(stack: Stack) -> None:
    assert_up_changes_nothing(stack)


def test_death_of_an_etcd_machine_is_survived(stack: Stack) -> None:
    victim = stack.node("etcd-1")
    with Load(stack, "an etcd machine dies") as load:
        victim.kill()
        wait_for("writes with two members", lambda: _written(stack), limit_s=30)
    load.assert_unharmed(longest_gap_ms=ANSWERS_AGAIN_MS)
    victim.start()
    stack.wait_healthy(NODES)


def _written(stack: Stack) -> str:
    try:
        stack.kubectl("create", "configmap", "written-with-two-members")
    except LabError as error:
        # The answer to an earlier try may have been lost.
        return "" if "already exists" in str(error) else str(error)
    return ""
