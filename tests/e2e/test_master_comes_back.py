"""Story: a master is decommissioned and comes back."""

from __future__ import annotations

from tests.e2e.harness import config, pods
from tests.e2e.harness.assertions import assert_no_trace, assert_sound
from tests.e2e.harness.load import Load
from tests.e2e.harness.stack import Stack

NAME = "test-back"
SUBNET = "10.93.26"
ALL = {"master-1", "master-2", "master-3", "worker-1"}


def wanted() -> config.Config:
    return config.lab(NAME, f"{SUBNET}.0/24", masters=3, workers=1)


def test_a_master_is_decommissioned_and_comes_back(stack: Stack) -> None:
    stack.up()
    pods.deploy(stack)
    machine = stack.node("master-3")
    with Load(stack, "decommissioned and back") as load:
        with pods.untouched(stack, ALL - {"master-3"}):
            stack.set_nodes({"master-3": {"state": "decommissioned"}})
            out = stack.up()
            stack.wait_healthy(ALL - {"master-3"}, limit_s=60)
            assert not machine.runs("etcd")
            assert not machine.runs("kubelet")
        _assert_forgotten(stack)
        with pods.untouched(stack, ALL - {"master-3"}):
            stack.set_nodes({})
            back = stack.up()
            stack.wait_healthy(ALL, limit_s=60)
    stack.took(f"a master decommissioned: {out.seconds:.0f} s, back", back.seconds)
    load.assert_unharmed()


def test_the_cluster_is_sound(stack: Stack) -> None:
    assert_sound(stack)


def _assert_forgotten(stack: Stack) -> None:
    """The others keep no address of it; its own files stay as they are."""
    assert_no_trace(stack, [f"{SUBNET}.13"], but={"master-3"})
