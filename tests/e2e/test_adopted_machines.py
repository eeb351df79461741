"""Story: machines that exist already are adopted, left clean, and adopted again. Their user is not root."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e import config, lab
from tests.e2e.assertions import assert_up_changes_nothing
from tests.e2e.machines import LEFT, Machines
from tests.e2e.stack import Stack

LAB = "test-adopted"


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    folder = Path(tmp_path_factory.mktemp("adopted"))
    machines = Machines(LAB, "10.93.4.0/24", folder)
    lab.free(LAB)
    try:
        yield machines
    finally:
        lab.free(LAB)


@pytest.fixture(scope="module")
def stack(machines: Machines) -> Iterator[Stack]:
    empty = config.adopted(LAB, machines.mirror, machines.user_key, {})
    with Stack("adopted_machines", empty) as stack:
        machines.start_lab()
        hosts = {
            "master": [machines.start("master-1", 11)],
            "worker": [machines.start("worker-1", 101)],
        }
        stack.config = config.adopted(LAB, machines.mirror, machines.user_key, hosts)
        stack.write()
        yield stack


def test_up_makes_a_cluster_of_them(stack: Stack) -> None:
    update = stack.up()
    stack.measured(f"up of 1 master and 1 worker, adopted: {update.seconds:.0f} s")
    stack.wait_healthy({"master-1", "worker-1"}, limit_s=10)


def test_second_up_changes_nothing(stack: Stack) -> None:
    assert_up_changes_nothing(stack)


def test_destroy_leaves_them_clean(stack: Stack) -> None:
    stack.destroy()
    for node in stack.nodes():
        assert node.run(LEFT) == "", f"{node.name} is not clean"


def test_they_can_be_adopted_again(stack: Stack) -> None:
    (stack.folder / "kubeconfig").unlink()
    stack.up()
    stack.wait_healthy({"master-1", "worker-1"}, limit_s=10)
