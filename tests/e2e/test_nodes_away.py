"""Story: a worker is dead, then the first master too, and nobody says so; then both are absent, and come back."""

from __future__ import annotations

import re

from tests.e2e.harness import config
from tests.e2e.harness.assertions import assert_up_changes_nothing
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


def test_absent_nodes_are_left_alone_and_converge_when_they_are_back(stack: Stack) -> None:
    stack.set_nodes({"master-1": {"state": "absent"}, "worker-2": {"state": "absent"}})
    stack.edit("kubelet.maxPods", 60)
    stack.up()
    assert most_pods(stack) == {
        "master-2": "60",
        "master-3": "60",
        "worker-1": "60",
        "worker-3": "60",
    }
    for name in ("master-1", "worker-2"):
        stack.node(name).start()
    stack.wait_healthy(ALL)
    stack.set_nodes({})
    with Load(stack, "absent nodes are back") as load:
        update = stack.up()
    load.assert_unharmed()
    assert {f"{NAME}-master-1-node", f"{NAME}-worker-2-node"} <= set(update.changes)
    wait_for("every kubelet with its setting", lambda: str(wrong(stack) or ""), limit_s=60)


def test_second_up_changes_nothing(stack: Stack) -> None:
    assert_up_changes_nothing(stack)


def ready(stack: Stack) -> set[str]:
    return {name for name, is_ready in stack.ready().items() if is_ready}


def most_pods(stack: Stack) -> dict[str, str]:
    """Of nodes that are Ready, as their kubelets say."""
    path = '{range .items[*]}{.metadata.name}={.status.capacity.pods}{"\\n"}{end}'
    rows = stack.kubectl("get", "nodes", "-o", f"jsonpath={path}").split()
    known = dict(row.split("=") for row in rows)
    return {name: known[name] for name in sorted(ready(stack))}


def wrong(stack: Stack) -> dict[str, str]:
    found = most_pods(stack)
    return {name: found.get(name, "none") for name in ALL if found.get(name) != "60"}
