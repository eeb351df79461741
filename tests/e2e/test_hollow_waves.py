"""Story: a setting reaches 200 hollow workers in waves while two of them are dead, and then these."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.harness.hollow.cluster import HollowCluster, hollow_cluster
from tests.e2e.harness.waiting import wait_for

NAME = "test-hollow-waves"
COUNT = 200
DEAD = (20, 21)  # as many as the default budget of 1 % allows


@pytest.fixture(scope="module")
def hollow() -> Iterator[HollowCluster]:
    with hollow_cluster(NAME, "10.93.117.0/24", COUNT) as cluster:
        cluster.forget_checkpoints()
        cluster.want(COUNT)
        cluster.stack.up()
        yield cluster


def test_a_setting_reaches_all_but_the_dead(hollow: HollowCluster) -> None:
    hollow.workers.switch_off(DEAD)
    hollow.stack.edit("kubelet.maxPods", 60)
    before = hollow.workers.commands()
    with hollow.felt("a setting in waves, two dead"):
        update = hollow.stack.up()
    hollow.stack.took(f"a setting of {COUNT} workers in waves, two of them dead", update.seconds)
    assert hollow.workers.commands() - before == {"node": COUNT - len(DEAD)}
    for number in DEAD:
        assert f"{hollow.workers.name(number)} does not answer and is left out" in update.output


def test_those_who_come_back_are_told_alone(hollow: HollowCluster) -> None:
    hollow.workers.switch_off(())
    wait_for("the dead are back", lambda: str(hollow.ready()[False] or ""), limit_s=90)
    before = hollow.workers.commands()
    hollow.stack.up()
    # All that is told a node: that it has joined already, join finds by itself.
    assert hollow.workers.commands() - before == {"node": len(DEAD), "join": len(DEAD)}
    assert hollow.ready() == {True: COUNT}
