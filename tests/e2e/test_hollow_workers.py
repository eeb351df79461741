"""Story: 200 hollow workers join, change in waves while two are dead, and one more joins while the first master is dead."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.e2e.harness.hollow import latency
from tests.e2e.harness.hollow.cluster import HollowCluster, hollow_cluster
from tests.e2e.harness.waiting import wait_for

COUNT = 200
DEAD = (20, 21)  # as many as the default budget of 1 % allows
# What is the cluster's, of no node.
CLUSTER_WIDE = r"(addon-[a-z-]+|acceptance|join-token|nodes|gate|wave-\d+)(-attempt)?"
SLO_S = 1  # of upstream, for one object; a list of all may take 30 times as long


@pytest.fixture(scope="module")
def hollow() -> Iterator[HollowCluster]:
    with hollow_cluster("hollow_workers", "10.93.114.0/24", COUNT + 1) as cluster:
        yield cluster


def test_all_join_though_the_engine_is_killed(hollow: HollowCluster) -> None:
    """The control plane with checkpoints; then workers without, whose phases run again what was forgotten."""
    stack = hollow.stack
    stack.took("up of 3 masters", stack.up().seconds)
    stack.environment["PULUMI_SKIP_CHECKPOINTS"] = "true"
    hollow.want(COUNT)
    killed = stack.start_up()
    wait_for("some have joined", lambda: few_joins(hollow), limit_s=240)
    killed.sigkill()
    stack.cancel()
    update = stack.up()
    stack.took(f"{COUNT} hollow workers more, after a kill while they joined", update.seconds)
    stack.measured(f"{stack.state_file.stat().st_size // 1024} KiB of state")
    assert hollow.ready() == {True: COUNT}


def test_second_up_speaks_to_no_machine(hollow: HollowCluster) -> None:
    before = hollow.workers.commands()
    update = hollow.stack.up()
    hollow.stack.took("an up that has nothing to do", update.seconds)
    assert update.changes == {}
    assert hollow.workers.commands() == before


def test_a_setting_reaches_all_but_the_dead(hollow: HollowCluster) -> None:
    hollow.workers.switch_off(DEAD)
    hollow.stack.edit("kubelet.maxPods", 60)
    before = hollow.workers.commands()
    with served(hollow, "a setting in waves, two dead"):
        update = hollow.stack.up()
    hollow.stack.took(f"a setting of {COUNT} workers in waves, two of them dead", update.seconds)
    assert hollow.workers.commands() - before == {"node": COUNT - len(DEAD)}
    for number in DEAD:
        assert f"{hollow.workers.name(number)} does not answer and is left out" in update.output


def test_one_joins_while_the_first_master_is_dead(hollow: HollowCluster) -> None:
    hollow.workers.switch_off(())
    wait_for("the dead are back", lambda: str(hollow.ready()[False] or ""), limit_s=90)
    hollow.stack.node("master-1").kill()
    hollow.want(COUNT + 1)
    with served(hollow, "the first master is dead, and a worker joins"):
        update = hollow.stack.up()
    hollow.stack.took("a worker more while the first master is dead", update.seconds)
    late = "|".join(hollow.workers.name(number) for number in (*DEAD, COUNT))
    ours = re.compile(rf"{hollow.stack.lab}-(({late})(-.*)?|{CLUSTER_WIDE})")
    assert {name for name in update.changes if not ours.fullmatch(name)} == set()
    assert hollow.ready() == {True: COUNT + 1}


def few_joins(hollow: HollowCluster) -> str:
    """Empty from the twentieth on."""
    joined = hollow.workers.commands()["join"]
    return "" if joined >= 20 else f"{joined} have joined"


@contextmanager
def served(hollow: HollowCluster, during: str) -> Iterator[None]:
    """The API servers meanwhile: nobody lost a node, and 99 % of requests for one object took less than the SLO."""
    asked, beats, missed = hollow.latency(), *hollow.workers.leases()
    yield
    taken = hollow.workers.leases()
    kinds = latency.between(asked, hollow.latency())
    hollow.stack.measured(
        f"{during}: {'; '.join(map(str, kinds))}; "
        f"{taken[1] - missed} of {taken[0] - beats} leases were not taken"
    )
    assert taken[1] == missed
    slow = [str(one) for one in kinds if one.kind != "list" and one.within_s > SLO_S]
    assert slow == []
