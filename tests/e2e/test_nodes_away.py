"""Story: a worker is dead, then the first master too, and nobody says so: what does not concern them is done."""

from __future__ import annotations

import re

from tests.e2e.harness import config
from tests.e2e.harness.assertions import assert_up_changes_nothing
from tests.e2e.harness.lab import LabError
from tests.e2e.harness.load import Load
from tests.e2e.harness.stack import Stack
from tests.e2e.harness.waiting import wait_for

NAME = "test-away"
ALL = {"master-1", "master-2", "master-3", "worker-1", "worker-2", "worker-3"}
CLUSTER_WIDE = (
    rf"{NAME}-(addon-[a-z-]+|vip-holders|acceptance|join-token|nodes|gate|wave-\d+)(-attempt)?"
)


def wanted() -> config.Config:
    return {
        **config.lab(NAME, "10.93.112.0/24", masters=3, workers=2),
        "frontDoors": {"vip": {"address": "10.93.112.5"}},
    }


def test_a_dead_worker_within_the_budget_is_named_and_stops_nothing(stack: Stack) -> None:
    stack.up()
    stack.settled()
    stack.node("worker-2").kill()
    stack.edit("pools.worker.labels", {"disk": "nvme"})
    with Load(stack, "a dead worker, and a label") as load:
        update = stack.up()
    load.assert_unharmed()
    assert "worker-2 does not answer; nothing changes on it" in update.output
    assert set(update.changes) == {f"{NAME}-acceptance-attempt", f"{NAME}-nodes", f"{NAME}-gate"}
    assert stack.kubectl("get", "nodes", "-l", "disk=nvme", "-o", "name").count("worker-") == 2


def test_while_the_first_master_is_dead_a_worker_joins_and_nothing_else_changes(
    stack: Stack,
) -> None:
    stack.make_leader("master-1")
    stack.node("master-1").kill()
    # What clients see of the death itself is judged elsewhere; here it was a while ago.
    wait_for("master-1 NotReady", lambda: _still_ready(stack, "master-1"), limit_s=120)
    stack.edit("pools.worker.count", 3)
    with Load(stack, "the first master is dead, and a worker joins") as load:
        update = stack.up()
    load.assert_unharmed()
    stack.took("a worker more while the first master is dead", update.seconds)
    assert "master-2 acts for the cluster" in update.output
    others = {name for name in update.changes if not re.fullmatch(CLUSTER_WIDE, name)}
    assert others
    assert {name for name in others if f"{NAME}-worker-3-" not in name} == set()
    assert ready(stack) == ALL - {"master-1", "worker-2"}


def test_second_up_changes_nothing(stack: Stack) -> None:
    assert_up_changes_nothing(stack)


def _still_ready(stack: Stack, name: str) -> str:
    try:
        return f"{name} is Ready" if stack.ready()[name] else ""
    except LabError as error:  # the virtual IP was on the dead one
        return str(error)


def ready(stack: Stack) -> set[str]:
    return {name for name, is_ready in stack.ready().items() if is_ready}
