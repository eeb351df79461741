"""Story: the smallest cluster, by config alone: one master, one worker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e import config
from tests.e2e.assertions import assert_up_changes_nothing
from tests.e2e.stack import Stack


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    wanted = config.lab("test-one", "10.93.3.0/24", masters=1, workers=1)
    with Stack("one_master_one_worker", wanted) as stack:
        yield stack


def test_up_ends_with_both_nodes_ready(stack: Stack) -> None:
    update = stack.up()
    stack.measured(f"up of 1 master and 1 worker: {update.seconds:.0f} s")
    stack.wait_healthy({"master-1", "worker-1"}, limit_s=10)


def test_second_up_changes_nothing(stack: Stack) -> None:
    assert_up_changes_nothing(stack)
