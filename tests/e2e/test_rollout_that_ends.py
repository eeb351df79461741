"""Story: a rollout ends at a critical node that fails, goes back in the same waves, holds where it is told to, and keeps to its windows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tests.e2e.harness import config, pods
from tests.e2e.harness.assertions import assert_up_changes_nothing
from tests.e2e.harness.stack import Stack
from tests.e2e.test_rollout_in_waves import BREAK_KUBELET, MEND_KUBELET, begun, cordoned, marks


def wanted() -> config.Config:
    out = config.lab("test-waves-end", "10.93.16.0/24", masters=1, workers=4)
    out["rollout"] = {
        "canary": {"nodes": ["worker-4"]},
        "parallel": 2,
        # Pods leave first, so a node that fails shows by its cordon.
        "drain": {"when": "always", "timeoutS": 120},
        "failureBudgetPercent": 50,
        "critical": ["worker-2"],
    }
    return out


@pytest.fixture(scope="module")
def cluster(stack: Stack) -> Stack:
    stack.up()
    pods.deploy(stack)
    return stack


def test_a_critical_node_that_fails_ends_it_whatever_the_budget(cluster: Stack) -> None:
    cluster.edit("kubelet.maxPods", 90)
    cluster.node("worker-2").run(BREAK_KUBELET)
    update = cluster.start("up", "--continue-on-error")
    assert update.end() != 0
    assert "the critical node worker-2 (failed at " in update.output
    assert begun(update) == [["worker-4"], ["worker-1", "worker-2"]]
    assert cordoned(cluster) == ["worker-2"]


def test_taking_it_back_goes_back_in_the_same_waves(cluster: Stack) -> None:
    cluster.node("worker-2").run(MEND_KUBELET)
    cluster.edit("kubelet.maxPods", None)
    back = cluster.up()
    assert begun(back) == [["worker-4"], ["worker-1", "worker-2"]]
    assert (cordoned(cluster), marks(cluster)) == ([], "")
    cluster.took("3 of 4 workers back in 2 waves", back.seconds)
    assert_up_changes_nothing(cluster)


def test_a_rollout_holds_after_its_canary_and_goes_on(cluster: Stack) -> None:
    cluster.edit("rollout.holdAfter", 1)
    cluster.edit("kubelet.maxPods", 100)
    held = cluster.up(fails=True)
    assert "the rollout holds after wave 1 of 3" in held.tail()
    assert begun(held) == [["worker-4"]]
    cluster.edit("rollout.holdAfter", None)
    assert begun(cluster.up()) == [["worker-1", "worker-2"], ["worker-3"]]
    assert (cordoned(cluster), marks(cluster)) == ([], "")


def test_no_wave_begins_outside_of_its_windows(cluster: Stack) -> None:
    in_two_days = datetime.now(UTC) + timedelta(days=2)
    cluster.edit("rollout.windows", [f"{in_two_days:%a} 03:00-04:00 UTC"])
    cluster.edit("kubelet.maxPods", 95)
    late = cluster.up(fails=True)
    assert "wave 1 of 3 may not begin now" in late.tail()
    assert begun(late) == []
    assert (cordoned(cluster), marks(cluster)) == ([], "")
    cluster.edit("rollout.windows", None)
    assert begun(cluster.up()) == [["worker-4"], ["worker-1", "worker-2"], ["worker-3"]]
