"""Story: 200 hollow workers join though the engine is killed meanwhile, and one more while the first master is dead."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest

from tests.e2e.harness.assertions import assert_up_changes_nothing
from tests.e2e.harness.hollow.cluster import HollowCluster, hollow_cluster
from tests.e2e.harness.waiting import wait_for

NAME = "test-hollow-workers"
COUNT = 200
# What is the cluster's, of no node.
CLUSTER_WIDE = r"(addon-[a-z-]+|acceptance|join-token|nodes|gate|wave-\d+)(-attempt)?"


@pytest.fixture(scope="module")
def hollow() -> Iterator[HollowCluster]:
    with hollow_cluster(NAME, "10.93.114.0/24", COUNT + 1) as cluster:
        yield cluster


def test_all_join_though_the_engine_is_killed(hollow: HollowCluster) -> None:
    """The control plane with checkpoints; then workers without, whose phases run again what was forgotten."""
    stack = hollow.stack
    stack.took("up of 3 masters", stack.up().seconds)
    hollow.forget_checkpoints()
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
    assert_up_changes_nothing(hollow.stack)
    assert hollow.workers.commands() == before


def test_one_joins_while_the_first_master_is_dead(hollow: HollowCluster) -> None:
    hollow.stack.node("master-1").kill()
    # Half of all requests wait for another leader of etcd, or for a connection that is gone.
    with hollow.felt("the first master dies"):
        wait_for("two renewals of each lease", renewals(hollow, 2 * COUNT), limit_s=90)
    assert hollow.ready() == {True: COUNT}
    hollow.want(COUNT + 1)
    with hollow.felt("the first master is dead, and a worker joins"):
        update = hollow.stack.up()
    hollow.stack.took("a worker more while the first master is dead", update.seconds)
    name = hollow.workers.name(COUNT)
    ours = re.compile(rf"{hollow.stack.lab}-({name}(-.*)?|{CLUSTER_WIDE})")
    assert {name for name in update.changes if not ours.fullmatch(name)} == set()
    assert hollow.ready() == {True: COUNT + 1}


def renewals(hollow: HollowCluster, wanted: int) -> Callable[[], str]:
    """Empty once so many more were made."""
    begin, _ = hollow.workers.leases()

    def missing() -> str:
        made = hollow.workers.leases()[0] - begin
        return "" if made >= wanted else f"{made} of {wanted}"

    return missing


def few_joins(hollow: HollowCluster) -> str:
    """Empty from the twentieth on."""
    joined = hollow.workers.commands()["join"]
    return "" if joined >= 20 else f"{joined} have joined"
