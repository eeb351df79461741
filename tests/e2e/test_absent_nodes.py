"""Story: a master and a worker are absent while settings change, and converge when they are back."""

from __future__ import annotations

from tests.e2e.harness import config
from tests.e2e.harness.assertions import assert_up_changes_nothing
from tests.e2e.harness.load import Load
from tests.e2e.harness.node import Node
from tests.e2e.harness.stack import Stack
from tests.e2e.harness.waiting import wait_for

NAME = "test-absent"
ALL = {"master-1", "master-2", "master-3", "worker-1", "worker-2"}


def wanted() -> config.Config:
    return {
        **config.lab(NAME, "10.93.113.0/24", masters=3, workers=2),
        "frontDoors": {"vip": {"address": "10.93.113.5"}},
    }


def test_absent_nodes_are_left_alone_and_converge_when_they_are_back(stack: Stack) -> None:
    stack.up()
    stack.settled()
    for name in ("master-1", "worker-2"):
        stack.node(name).kill()
    stack.set_nodes({"master-1": {"state": "absent"}, "worker-2": {"state": "absent"}})
    stack.edit("kubelet.maxPods", 60)
    stack.up()
    assert most_pods(stack) == {
        "master-2": "60",
        "master-3": "60",
        "worker-1": "60",
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


def test_a_member_that_is_back_has_its_turn_before_others_restart(stack: Stack) -> None:
    """It is the last one by its name. Were others to restart before it, two of three would be down."""
    stack.node("master-3").kill()
    stack.set_nodes({"master-3": {"state": "absent"}})
    stack.up()
    stack.node("master-3").start()
    stack.wait_healthy(ALL)
    stack.set_nodes({})
    stack.edit("etcd.quotaBackendGib", 3)
    words = " ".join(stack.preview().output.split())
    assert "2 of 3 etcd members restart one at a time" in words
    assert "kept on master-2, because" in words  # off all that change before it
    with Load(stack, "a member is back, and all restart") as load:
        stack.up()
    load.assert_unharmed()
    began = {node.name: etcd_began(node) for node in stack.members()}
    assert sorted(began, key=lambda name: began[name]) == ["master-3", "master-1", "master-2"], (
        began
    )


def test_second_up_changes_nothing(stack: Stack) -> None:
    assert_up_changes_nothing(stack)


def etcd_began(node: Node) -> int:
    """When its etcd began, in microseconds of the clock that all lab machines share."""
    return int(node.run("systemctl show -P ActiveEnterTimestampMonotonic etcd"))


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
