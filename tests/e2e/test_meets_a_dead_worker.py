"""Story: a change meets a dead worker that no budget allows, ends soon, and is taken back once it is there again."""

from __future__ import annotations

from tests.e2e.harness import config
from tests.e2e.harness.assertions import assert_up_changes_nothing
from tests.e2e.harness.stack import Stack
from tests.e2e.test_failed_change_reverted import seconds_since_begin, shape

# A bound against waiting for what cannot come, which takes minutes; it is no measure of speed.
_SOON_S = 240


def wanted() -> config.Config:
    return {
        **config.lab("test-meets-dead", "10.93.103.0/24", masters=1, workers=1),
        "rollout": {"absentBudget": 0},
    }


def test_change_that_meets_a_dead_worker_ends_soon_and_is_undone(cluster: Stack) -> None:
    worker, master = cluster.node("worker-1"), cluster.node("master-1")
    before = {node.name: shape(node) for node in (worker, master)}

    cluster.edit("kubelet.maxPods", 60)
    worker.kill()
    failed = cluster.up(fails=True)
    took = seconds_since_begin(failed, "test-meets-dead-nodes")
    cluster.took("from the begin of the wait for a dead worker to the end of the update", took)
    assert took < _SOON_S
    assert "no answer from worker-1, and rollout.absentBudget allows 0" in failed.output
    assert "nothing moved for 90 s: worker-1 (has not applied" in failed.tail()
    assert "switched on, or said to be absent or lost" in failed.tail()

    worker.start()
    cluster.edit("kubelet.maxPods", None)
    cluster.up()
    assert {node.name: shape(node) for node in (worker, master)} == before
    assert_up_changes_nothing(cluster)
