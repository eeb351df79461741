"""Story: two masters join one, and the engine is killed at six random steps of it; clients feel nothing, and a plain up ends what was begun.

KUBE_HA_SEED=<number> kills at the same steps as the run that printed it.
"""

from __future__ import annotations

from tests.e2e.harness import config, pods
from tests.e2e.harness.assertions import assert_sound
from tests.e2e.harness.faults import engine_deaths_at_random, seeded
from tests.e2e.harness.load import Load
from tests.e2e.harness.stack import Stack

KILLS = 6


def wanted() -> config.Config:
    return config.lab("test-killed-in", "10.93.31.0/24", masters=1, workers=1)


def test_masters_join_though_the_engine_dies_anywhere(stack: Stack) -> None:
    chance = seeded(stack)
    stack.up()
    pods.deploy(stack)
    stack.edit("pools.master.count", 3)
    with (
        Load(stack, "engine killed") as load,
        pods.untouched(stack, {"master-1", "worker-1"}),
    ):
        killed = engine_deaths_at_random(stack, chance, KILLS)
        update = stack.up()
        load.read_kubeconfig_again()
        stack.took(f"killed {killed} times; the update after that", update.seconds)
        stack.wait_healthy({"master-1", "master-2", "master-3", "worker-1"}, limit_s=30)
    assert killed >= 3, "one of the first steps was the last one: the run says little"
    load.assert_unharmed()


def test_what_is_left_is_sound(stack: Stack) -> None:
    assert_sound(stack)
