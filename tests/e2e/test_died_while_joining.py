"""Story: machines die in the middle of their own join; what they left is cleaned up after them alone, and the edit continues."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.e2e.harness import config, pods
from tests.e2e.harness.assertions import assert_sound
from tests.e2e.harness.faults import engine_death
from tests.e2e.harness.load import Load
from tests.e2e.harness.stack import Stack
from tests.e2e.harness.waiting import wait_for

NAME = "test-died"
SUBNET = "10.93.32"
STAY = {"master-1", "worker-1"}

# etcd is as slow to start as on a machine with a bad disk: its member is listed, and nobody has heard of it yet.
_SLOW_ETCD = (
    "mkdir -p /run/systemd/system/etcd.service.d; "
    "printf '[Service]\\nExecStartPre=/bin/sleep 60\\n' >/run/systemd/system/etcd.service.d/99-slow.conf"
)


def wanted() -> config.Config:
    return config.lab(NAME, f"{SUBNET}.0/24", masters=1, workers=1)


@pytest.fixture(scope="module")
def load(stack: Stack) -> Iterator[Load]:
    """Runs from the first death to the last."""
    stack.up()
    pods.deploy(stack)
    with Load(stack, "while machines die") as load:
        yield load


def test_a_dead_master_is_made_anew_and_a_dead_worker_switched_on(stack: Stack, load: Load) -> None:
    first, second = stack.node("master-1"), stack.node("master-2")
    stack.edit("pools.master.count", 2)
    with pods.untouched(stack, STAY):
        engine_death(stack, resource=f"{NAME}-master-2-node")
        second.run(_SLOW_ETCD)
        _dies(stack, "master-2", lambda: "unstarted" in first.etcdctl("member list -w simple"))
        stack.set_nodes({"master-2": {"generation": 2}})
        stack.edit("pools.worker.count", 2)
        _dies(stack, "worker-2", lambda: stack.node("worker-2").runs("kubeadm"))
        stack.node("worker-2").start()
        update = stack.up()
    stack.took("the update after both", update.seconds)
    stack.wait_healthy({*STAY, "master-2", "worker-2"}, limit_s=60)


def test_clients_felt_nothing(stack: Stack, load: Load) -> None:
    load.end()
    load.assert_unharmed()
    pods.wait_running(stack)
    assert_sound(stack)


def _dies(stack: Stack, name: str, when: Callable[[], bool]) -> None:
    """An update in the course of which this machine loses its power."""
    update = stack.start_up()
    try:
        wait_for(
            f"the moment for {name} to die",
            lambda: "" if when() else f"not yet: {update.tail(5)}",
            limit_s=200,
            every_s=0.05,
        )
        stack.node(name).kill()
        assert update.end() != 0, update.tail()
    finally:
        update.stop()
    stack.measured(f"{name} died, and the update ended after {update.seconds:.0f} s")
