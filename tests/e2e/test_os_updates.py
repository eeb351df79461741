"""Story: packages of the operating system are brought up to date with the reboot that they ask for, machine by machine, under load."""

from __future__ import annotations

import itertools

import pytest

from tests.e2e.harness import config, debian, pods
from tests.e2e.harness.assertions import assert_up_changes_nothing
from tests.e2e.harness.load import Load
from tests.e2e.harness.stack import Stack
from tests.e2e.harness.update import Update

SUBNET, MIRROR = "10.93.74.0/24", "10.93.74.2"
MASTERS = ["master-1", "master-2", "master-3"]
NODES = [*MASTERS, "worker-2", "worker-1"]  # in the order that is planned


def wanted() -> config.Config:
    out = config.lab("test-os", SUBNET, masters=3, workers=2)
    # The clients' machine is the last one: they have ended before its turn.
    out["rollout"] = {"canary": {"nodes": ["worker-2"]}, "holdAfter": 1}
    return out


@pytest.fixture(scope="module")
def cluster(stack: Stack) -> Stack:
    stack.up()
    pods.deploy(stack)
    debian.give(stack, NODES, MIRROR)
    return stack


def begun(update: Update) -> list[str]:
    """Names of the nodes whose node phase ran, in that order."""
    known = update.durations()
    phases = {name: known.get(f"test-os-{name}-node") for name in NODES}
    first = {name: times[0] for name, times in phases.items() if times}
    return sorted(first, key=first.__getitem__)


def test_machines_reboot_one_after_the_other_and_no_request_is_lost(cluster: Stack) -> None:
    cluster.edit("os.packages", "first")
    cluster.edit("os.hold", ["test-held"])
    with Load(cluster, "while machines reboot", worker="worker-1") as load:
        held = cluster.up(fails=True)
    assert "the rollout holds after wave 1 of 2" in held.tail()
    load.assert_unharmed()
    assert begun(held) == NODES[:4]
    _assert_one_by_one(held)
    assert debian.reboots(cluster, NODES) == {**dict.fromkeys(NODES, 1), "worker-1": 0}
    _measure(cluster, held)


def test_the_rollout_goes_on_with_who_is_left(cluster: Stack) -> None:
    cluster.edit("rollout.holdAfter", None)
    assert begun(cluster.up()) == ["worker-1"]
    assert debian.reboots(cluster, NODES) == dict.fromkeys(NODES, 1)
    started = debian.started(cluster, NODES)
    assert sorted(NODES, key=started.__getitem__) == NODES


def test_each_has_the_new_packages_but_held_ones_and_serves_again(cluster: Stack) -> None:
    assert debian.versions(cluster, NODES) == dict.fromkeys(NODES, "1.0 1.1")
    assert debian.marks(cluster) == dict.fromkeys(NODES, "os=first")
    pods.wait_running(cluster)


def test_second_up_changes_nothing(cluster: Stack) -> None:
    assert_up_changes_nothing(cluster)


def _measure(stack: Stack, update: Update) -> None:
    took = update.durations()
    stack.took("3 masters and a worker", update.seconds)
    for name in NODES[:4]:
        last = f"test-os-{name}-{'master' if name in MASTERS else 'node'}"
        stack.took(f"{name}: updated and rebooted", took[last][1] - took[f"test-os-{name}-node"][0])


def _assert_one_by_one(update: Update) -> None:
    """Each master whole before the next is touched, and all masters before any worker."""
    took = update.durations()
    turns = [(took[f"test-os-{m}-node"][0], took[f"test-os-{m}-master"][1]) for m in MASTERS]
    for (_, ended), (begin, _) in itertools.pairwise(turns):
        assert ended <= begin, f"turns of masters overlap: {turns}"
    assert took["test-os-worker-2-node"][0] >= turns[-1][1]
