"""Story: two of three masters are destroyed, with them etcd's quorum; the cluster comes back from the one that is left, and the others join again."""

from __future__ import annotations

import pytest

from tests.e2e.harness import config, pods
from tests.e2e.harness.assertions import assert_sound, assert_up_changes_nothing
from tests.e2e.harness.operations import destroy, operation, write, written
from tests.e2e.harness.stack import Stack

LEFT, GONE = "master-2", ("master-1", "master-3")
NODES = {LEFT, *GONE, "worker-1"}
WITHOUT = " ".join(GONE)


def wanted() -> config.Config:
    return config.lab("test-quorum", "10.93.68.0/24", masters=3, workers=1)


@pytest.fixture(scope="module")
def stack(stack: Stack) -> Stack:
    stack.up()
    pods.deploy(stack)
    write(stack, "acknowledged")
    return stack


@pytest.fixture(scope="module")
def worker(stack: Stack) -> dict[str, str]:
    """What runs on the worker before anything is lost."""
    return stack.node("worker-1").processes()


def test_while_the_others_answer_it_is_refused(stack: Stack, worker: dict[str, str]) -> None:
    assert worker
    said = operation(
        stack, "restore", "--from", LEFT, "--on", LEFT, "--without", WITHOUT, fails=True
    )
    for name in GONE:
        assert name in said
    assert "acknowledged" in written(stack)


def test_from_the_one_that_is_left_the_cluster_serves_again(stack: Stack) -> None:
    destroy(stack, *GONE)
    said = operation(stack, "restore", "--from", LEFT, "--on", LEFT, "--without", WITHOUT)
    assert f"etcd serves on {LEFT}" in said
    context = f"{stack.lab}-{LEFT}"
    assert "configmap/acknowledged" in stack.kubectl(
        "get", "configmap", "-o", "name", context=context
    )
    # A write as well: one voter of one is a quorum.
    stack.kubectl("create", "configmap", "written-by-one", context=context)


def test_an_up_makes_the_others_again(stack: Stack, worker: dict[str, str]) -> None:
    stack.edit("converge.generation", 2)
    update = stack.up()
    stack.took("up after the loss of two of three masters", update.seconds)
    stack.wait_healthy(NODES)
    assert {"acknowledged", "written-by-one"} <= written(stack)
    assert stack.node("worker-1").processes()["kubelet"] == worker["kubelet"]
    assert_sound(stack)
    assert_up_changes_nothing(stack)
