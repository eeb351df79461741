"""Story: masters come, go and are replaced, and each time the engine is killed at random steps; clients feel nothing, and a plain up ends what was begun.

KUBE_HA_SEED=<number> kills at the same steps as the run that printed it.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator

import pytest

from tests.e2e import config, pods
from tests.e2e.assertions import assert_no_trace, assert_sound
from tests.e2e.faults import engine_death_at_random
from tests.e2e.load import Load
from tests.e2e.stack import Stack

NAME = "test-random"
SUBNET = "10.93.31"
STAYS = {"worker-1"}

# (how often the engine is killed, masters by number, those of them that are removed)
EDITS = ((4, 3, ()), (3, 3, (1,)), (3, 4, (1, 2)))


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    wanted = config.lab(NAME, f"{SUBNET}.0/24", masters=1, workers=1)
    with Stack("killed_at_random", wanted) as stack:
        yield stack


def test_membership_survives_an_engine_that_dies_anywhere(stack: Stack) -> None:
    seed = os.environ.get("KUBE_HA_SEED") or str(random.SystemRandom().randrange(1_000_000))
    stack.measured(f"KUBE_HA_SEED={seed}")
    chance = random.Random(seed)  # noqa: S311 (the steps shall be known again)
    stack.up()
    pods.deploy(stack)
    there, deaths = {1}, 0
    with Load(stack, "engine killed") as load:
        for times, count, removed in EDITS:
            wanted = set(range(1, count + 1)) - set(removed)
            stack.edit("pools.master.count", count)
            stack.set_nodes({f"master-{number}": {"state": "removed"} for number in removed})
            with pods.untouched(stack, STAYS | _masters(there & wanted)):
                deaths += sum(engine_death_at_random(stack, chance) for _ in range(times))
                update = stack.up()
                load.read_kubeconfig_again()
            stack.measured(f"the up after that: {update.seconds:.0f} s")
            stack.wait_healthy(STAYS | _masters(wanted), limit_s=30)
            assert_no_trace(stack, _addresses(set(range(1, count + 1)) - wanted))
            there = wanted
    stack.measured(f"the engine was killed {deaths} times")
    assert deaths >= 7, "too many of the steps were the last ones: the run says little"
    load.assert_unharmed()


def test_what_is_left_is_sound(stack: Stack) -> None:
    assert_sound(stack, gone=_addresses({1, 2}))


def _masters(numbers: set[int]) -> set[str]:
    return {f"master-{number}" for number in numbers}


def _addresses(numbers: set[int]) -> list[str]:
    return [f"{SUBNET}.1{number}" for number in sorted(numbers)]
