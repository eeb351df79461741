"""Story: the bootstrap master, which leads etcd, dies and is recreated under its name."""

from __future__ import annotations

from tests.e2e.harness import config, pods
from tests.e2e.harness.assertions import assert_sound
from tests.e2e.harness.load import Load
from tests.e2e.harness.stack import Stack

NAME = "test-again"
ALL = {"master-1", "master-2", "master-3", "worker-1"}


def wanted() -> config.Config:
    return config.lab(NAME, "10.93.34.0/24", masters=3, workers=1)


def test_a_dead_master_is_made_anew_under_its_name(stack: Stack) -> None:
    stack.up()
    pods.deploy(stack)
    stack.make_leader("master-1")
    before = _member_id(stack, "master-1")
    with pods.untouched(stack, ALL - {"master-1"}):
        stack.node("master-1").kill()
        stack.set_nodes({"master-1": {"generation": 2}})
        with Load(stack, "recreated") as load:
            update = stack.up()
        stack.wait_healthy(ALL, limit_s=60)
    stack.took("a dead bootstrap master recreated", update.seconds)
    load.assert_unharmed()
    assert _member_id(stack, "master-1") != before
    pods.wait_running(stack)


def test_the_cluster_is_sound(stack: Stack) -> None:
    assert_sound(stack)


def _member_id(stack: Stack, name: str) -> str:
    rows = stack.members()[0].etcdctl("member list -w simple").splitlines()
    (found,) = [row.split(", ")[0] for row in rows if row.split(", ")[2] == name]
    return found
