"""Story: one master becomes three, while clients go on."""

from __future__ import annotations

import time

from tests.e2e.harness import config
from tests.e2e.harness.assertions import assert_up_changes_nothing
from tests.e2e.harness.load import Load
from tests.e2e.harness.stack import Stack

# A write that the dead leader had in hand is given up by the others after 7 s.
SERVES_AGAIN_MS = 10_000
GROWN = {"master-1", "master-2", "master-3", "worker-1"}


def wanted() -> config.Config:
    return config.lab("test-grow", "10.93.10.0/24", masters=1, workers=1)


def test_two_more_masters_join_and_clients_go_on(stack: Stack) -> None:
    stack.up()
    stack.edit("pools.master.count", 3)
    with Load(stack, "while growing") as load:
        update = stack.up()
    stack.took("up from 1 to 3 masters", update.seconds)
    load.assert_unharmed()
    stack.wait_healthy(GROWN, limit_s=30)
    assert {node.name for node in stack.members()} == GROWN - {"worker-1"}


def test_second_up_changes_nothing(stack: Stack) -> None:
    assert_up_changes_nothing(stack)


def test_grown_cluster_outlives_its_first_master(stack: Stack) -> None:
    witness = "test-grow-master-2"
    stack.forget_kubeconfig()
    with Load(stack, "its first master dies") as load:
        stack.node("master-1").kill()
        time.sleep(20)  # the clients tell of what is in hand when it dies
        stack.kubectl("create", "configmap", "written-without-the-first-master", context=witness)
    load.assert_served_again(within_ms=SERVES_AGAIN_MS)
