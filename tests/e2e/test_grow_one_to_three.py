"""Story: one master becomes three, while clients go on."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.e2e import config
from tests.e2e.assertions import assert_up_changes_nothing
from tests.e2e.load import Load
from tests.e2e.stack import Stack

# A write that the dead leader had in hand is given up by the others after 7 s.
SERVES_AGAIN_MS = 10_000
GROWN = {"master-1", "master-2", "master-3", "worker-1"}


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    wanted = config.lab("test-grow", "10.93.10.0/24", masters=1, workers=1)
    with Stack("grow_one_to_three", wanted) as stack:
        yield stack


def test_two_more_masters_join_and_clients_go_on(stack: Stack) -> None:
    stack.up()
    stack.edit("pools.master.count", 3)
    with Load(stack, "while growing") as load:
        update = stack.up()
    stack.measured(f"up from 1 to 3 masters: {update.seconds:.0f} s")
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
