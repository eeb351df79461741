"""Story: machines that exist already are adopted, taken off the list, put back, wiped, and adopted again. Their user is not root."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.harness import config, lab
from tests.e2e.harness.assertions import assert_up_changes_nothing
from tests.e2e.harness.machines import LEFT, Machines
from tests.e2e.harness.operations import operation
from tests.e2e.harness.stack import Stack

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
    stack.took("up of 1 master and 1 worker, adopted", update.seconds)
    stack.wait_healthy({"master-1", "worker-1"}, limit_s=10)


def test_second_up_changes_nothing(stack: Stack) -> None:
    assert_up_changes_nothing(stack)


def test_a_machine_taken_off_the_list_keeps_what_it_has_and_comes_back(stack: Stack) -> None:
    worker, hosts = stack.node("worker-1"), _hosts(stack)
    worker.run("mkdir -p /var/lib/kubelet/volume && echo kept >/var/lib/kubelet/volume/data")
    programs = worker.files()["/usr/local/bin/kubelet"]
    stack.edit("pools.worker.hosts", [])
    stack.up()
    stack.wait_healthy({"master-1"}, limit_s=30)
    assert not [name for name in ("kubelet", "containerd", "haproxy") if worker.runs(name)]
    assert worker.run("systemctl is-enabled kubelet || true").strip() == "disabled"
    assert worker.files()["/usr/local/bin/kubelet"] == programs
    assert worker.run("ls /etc/kubernetes /etc/kube-ha 2>/dev/null || true") == "", "no identity"
    stack.edit("pools.worker.hosts", hosts)
    update = stack.up()
    stack.took("a worker that was put back on the list", update.seconds)
    stack.wait_healthy({"master-1", "worker-1"}, limit_s=10)
    assert worker.run("cat /var/lib/kubelet/volume/data") == "kept\n"


def test_a_machine_that_left_is_wiped_by_name(stack: Stack) -> None:
    worker, hosts = stack.node("worker-1"), _hosts(stack)
    refused = operation(stack, "wipe", "worker-1", fails=True)
    assert "worker-1 is in the config of this stack" in refused
    stack.edit("pools.worker.hosts", [])
    stack.up()
    assert "machine is clean" in operation(stack, "wipe", "worker-1")
    assert worker.run(LEFT) == ""
    stack.edit("pools.worker.hosts", hosts)


def test_destroy_leaves_them_clean_where_that_is_wanted(stack: Stack) -> None:
    stack.edit("machines.onRelease", "wipe")
    stack.up()
    stack.destroy()
    for node in stack.nodes():
        assert node.run(LEFT) == "", f"{node.name} is not clean"


def test_they_can_be_adopted_again(stack: Stack) -> None:
    (stack.folder / "kubeconfig").unlink()
    stack.up()
    stack.wait_healthy({"master-1", "worker-1"}, limit_s=10)


def _hosts(stack: Stack) -> object:
    pools = stack.config["pools"]
    assert isinstance(pools, dict)
    worker = pools["worker"]
    assert isinstance(worker, dict)
    return worker["hosts"]
