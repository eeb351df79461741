"""Story: the bootstrap master leaves, then one more is replaced, and the engine is killed at four random steps; clients feel nothing, and a plain up ends what was begun.

KUBE_HA_SEED=<number> kills at the same steps as the run that printed it.
"""

from __future__ import annotations

from tests.e2e.harness import config, pods
from tests.e2e.harness.assertions import assert_no_trace, assert_sound
from tests.e2e.harness.faults import engine_deaths_at_random, seeded
from tests.e2e.harness.load import Load
from tests.e2e.harness.stack import Stack

SUBNET = "10.93.35"
GONE = [f"{SUBNET}.11", f"{SUBNET}.12"]
REMOVED: dict[str, object] = {"state": "removed"}


def wanted() -> config.Config:
    return config.lab("test-killed-out", f"{SUBNET}.0/24", masters=3, workers=1)


def test_masters_leave_though_the_engine_dies_anywhere(stack: Stack) -> None:
    chance = seeded(stack)
    stack.up()
    pods.deploy(stack)
    with Load(stack, "engine killed") as load:
        stack.make_leader("master-1")
        stack.set_nodes({"master-1": REMOVED})
        with pods.untouched(stack, {"master-2", "master-3", "worker-1"}):
            killed = engine_deaths_at_random(stack, chance, 2)
            _ended(stack, load, {"master-2", "master-3"}, gone=[f"{SUBNET}.11"])

        stack.edit("pools.master.count", 4)
        stack.set_nodes({"master-1": REMOVED, "master-2": REMOVED})
        with pods.untouched(stack, {"master-3", "worker-1"}):
            killed += engine_deaths_at_random(stack, chance, 2)
            _ended(stack, load, {"master-3", "master-4"}, gone=GONE)
    stack.measured(f"the engine was killed {killed} times")
    assert killed >= 2, "one of the first steps was the last one: the run says little"
    load.assert_unharmed()


def test_what_is_left_is_sound(stack: Stack) -> None:
    assert_sound(stack, gone=GONE)


def _ended(stack: Stack, load: Load, masters: set[str], *, gone: list[str]) -> None:
    update = stack.up()
    load.read_kubeconfig_again()
    stack.took("the update after that", update.seconds)
    stack.wait_healthy({*masters, "worker-1"}, limit_s=30)
    assert_no_trace(stack, gone)
