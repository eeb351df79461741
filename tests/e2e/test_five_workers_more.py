"""Story: five workers join at once, meanwhile a second run is refused and one of the machines stalls; one of the middle leaves; machines boot again."""

from __future__ import annotations

from tests.e2e.harness import config, lab, pods
from tests.e2e.harness.assertions import assert_no_trace, assert_sound
from tests.e2e.harness.faults import stall
from tests.e2e.harness.load import Load
from tests.e2e.harness.stack import Stack
from tests.e2e.harness.waiting import wait_for

NAME = "test-five-more"
SUBNET = "10.93.27"


def wanted() -> config.Config:
    return config.lab(NAME, f"{SUBNET}.0/24", masters=1, workers=1)


def test_five_join_at_once_and_a_second_run_is_refused(stack: Stack) -> None:
    stack.up()
    pods.deploy(stack)
    stack.edit("pools.worker.count", 6)
    with Load(stack, "five workers more") as load, pods.untouched(stack, {"master-1", "worker-1"}):
        update = stack.start_up()
        wait_for(
            "first new machine prepared",
            lambda: "" if update.has_begun(f"{NAME}-worker-4-node") else "not yet",
            limit_s=120,
        )
        with stall(stack.node("worker-4")):
            refused = stack.up(fails=True)
        assert "the stack is currently locked" in refused.output
        assert refused.ssh_connections == []
        assert refused.changes == {}
        assert update.end() == 0, update.tail()
    stack.took("up that adds five workers", update.seconds)
    load.assert_unharmed()
    stack.wait_healthy(_nodes(1, 2, 3, 4, 5, 6), limit_s=30)
    touched = {name for name in update.changes if "-worker-1-" in name or "-master-1-" in name}
    assert touched == set()


def test_one_of_the_middle_leaves(stack: Stack) -> None:
    stay = _nodes(1, 2, 4, 5, 6)
    stack.set_nodes({"worker-3": {"state": "removed"}})
    with pods.untouched(stack, stay):
        update = stack.up()
    stack.took("up that takes one of six workers out", update.seconds)
    stack.wait_healthy(stay, limit_s=30)
    pods.wait_running(stack)
    assert_no_trace(stack, [f"{SUBNET}.103"])


def test_machines_that_boot_again_come_back_by_themselves(stack: Stack) -> None:
    for name in ("worker-2", "master-1"):
        stack.node(name).kill()
    for name in ("master-1", "worker-2"):
        stack.node(name).start()
    seconds = stack.wait_healthy(_nodes(1, 2, 4, 5, 6), limit_s=180)
    stack.measured(f"the only master and a worker started again: healthy after {seconds:.0f} s")
    pods.wait_running(stack, limit_s=180)
    assert_sound(stack, gone=[f"{SUBNET}.103"])


def test_a_destroy_takes_dead_machines_of_the_lab_with_it(stack: Stack) -> None:
    for name in ("master-1", "worker-2"):
        stack.node(name).kill()
    update = stack.destroy()
    stack.took("destroy, two machines of which are dead", update.seconds)
    assert update.ssh_connections == []
    assert stack.resources() == []
    assert lab.containers(NAME) == []


def _nodes(*workers: int) -> set[str]:
    return {"master-1", *(f"worker-{number}" for number in workers)}
