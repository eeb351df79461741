"""Story: two of three etcd machines are destroyed; the one that is left brings the cluster back with all it knew."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e import config
from tests.e2e.assertions import assert_up_changes_nothing
from tests.e2e.operations import destroy, operation, write, written
from tests.e2e.stack import Stack

MASTERS = {"master-1", "master-2", "master-3"}


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    wanted = config.lab("test-last-member", "10.93.61.0/24", masters=3, workers=1)
    with Stack("last_member", wanted) as stack:
        stack.up()
        yield stack


def test_one_member_that_is_left_brings_the_cluster_back(stack: Stack) -> None:
    write(stack, "last-words")
    destroy(stack, "master-1", "master-3")
    assert "cannot be reached" in operation(stack, "restore", "--from", "master-2", fails=True)
    operation(stack, "restore", "--from", "master-2", "--without", "master-1,master-3")
    stack.edit("converge.generation", 2)
    update = stack.up()
    stack.measured(f"up after the recovery from one member of three: {update.seconds:.0f} s")
    stack.wait_healthy({*MASTERS, "worker-1"})
    assert "last-words" in written(stack)
    assert_up_changes_nothing(stack)
