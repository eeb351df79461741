"""Story: the smallest cluster, by config alone: one master, one worker."""

from __future__ import annotations

from tests.e2e.harness import config
from tests.e2e.harness.assertions import assert_up_changes_nothing
from tests.e2e.harness.stack import Stack


def wanted() -> config.Config:
    return config.lab("test-one", "10.93.3.0/24", masters=1, workers=1)


def test_up_ends_with_both_nodes_ready(stack: Stack) -> None:
    update = stack.up()
    stack.took("up of 1 master and 1 worker", update.seconds)
    stack.wait_healthy({"master-1", "worker-1"}, limit_s=10)


def test_second_up_changes_nothing(stack: Stack) -> None:
    assert_up_changes_nothing(stack)
