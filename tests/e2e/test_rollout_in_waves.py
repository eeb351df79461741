"""Story: changes reach workers in waves: a canary, budgets that block, a node that fails, and pods that move only where they have to."""

from __future__ import annotations

import json
import re

import pytest

from tests.e2e.harness import config, pods
from tests.e2e.harness.assertions import assert_up_changes_nothing
from tests.e2e.harness.stack import Stack
from tests.e2e.harness.update import Update

WORKERS = [f"worker-{number}" for number in range(1, 5)]
BREAK_KUBELET = r"""
mkdir -p /run/systemd/system/kubelet.service.d
printf '[Service]\nExecStartPre=/bin/false\n' >/run/systemd/system/kubelet.service.d/99-broken.conf
systemctl daemon-reload
"""
MEND_KUBELET = "rm -r /run/systemd/system/kubelet.service.d; systemctl daemon-reload"


def wanted() -> config.Config:
    out = config.lab("test-waves", "10.93.14.0/24", masters=1, workers=4)
    # The canary is the last one by name, so that an order by name would be seen.
    out["rollout"] = {"canary": {"nodes": ["worker-4"]}, "parallel": 2}
    return out


@pytest.fixture(scope="module")
def cluster(stack: Stack) -> Stack:
    stack.up()
    pods.deploy(stack)
    return stack


def begun(update: Update) -> list[list[str]]:
    """Names of the workers whose node phase ran, by waves: a wave begins when the gate behind it does."""
    first = {name: begin for name, (begin, _) in update.durations().items()}
    marks = [at for name, at in first.items() if re.search(r"-(wave-[1-9]|nodes)$", name)]
    found: dict[int, list[str]] = {}
    for name, at in first.items():
        worker = re.search(r"-(worker-\d+)-node$", name)
        if worker:
            found.setdefault(sum(mark <= at for mark in marks), []).append(worker[1])
    return [sorted(names) for _, names in sorted(found.items())]


def homes(stack: Stack) -> dict[str, str]:
    """Node of each pod of the Deployment."""
    listed = json.loads(
        stack.kubectl("-n", pods.NAMESPACE, "get", "pods", "-l", "app=somewhere", "-o", "json")
    )
    return {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in listed["items"]}


def cordoned(stack: Stack) -> list[str]:
    path = '{range .items[?(@.spec.unschedulable==true)]}{.metadata.name}{"\\n"}{end}'
    return stack.kubectl("get", "nodes", "-o", f"jsonpath={path}").split()


def marks(stack: Stack) -> str:
    """What is left of an update on the nodes."""
    path = "{.items[*].metadata.annotations.kube-ha\\.io/updating}{.items[*].metadata.annotations.kube-ha\\.io/cordoned}{.items[*].metadata.annotations.kube-ha\\.io/failed}"
    return stack.kubectl("get", "nodes", "-o", f"jsonpath={path}")


def set_budget(stack: Stack, most: int) -> None:
    patch = json.dumps({"spec": {"maxUnavailable": most}})
    stack.kubectl("-n", pods.NAMESPACE, "patch", "pdb", "somewhere", "-p", patch)


def test_a_change_that_ends_no_container_moves_no_pod(cluster: Stack) -> None:
    before = homes(cluster)
    cluster.edit("kubelet.maxPods", 60)
    update = cluster.up()
    assert begun(update) == [["worker-4"], ["worker-1", "worker-2"], ["worker-3"]]
    assert homes(cluster) == before
    assert marks(cluster) == ""
    assert_up_changes_nothing(cluster)


def test_a_budget_that_blocks_ends_it_before_any_node_is_touched(cluster: Stack) -> None:
    before = homes(cluster)
    set_budget(cluster, 0)
    cluster.edit("rollout.drain", {"when": "always", "timeoutS": 120})
    cluster.edit("kubelet.maxPods", 70)
    failed = cluster.up(fails=True)
    assert "evictions would be refused, no node was touched" in failed.tail()
    assert f"{pods.NAMESPACE}/somewhere-" in failed.tail()
    assert begun(failed) == []
    assert (homes(cluster), cordoned(cluster)) == (before, [])

    set_budget(cluster, 1)
    update = cluster.up()
    assert begun(update) == [["worker-4"], ["worker-1", "worker-2"], ["worker-3"]]
    assert not set(before) & set(homes(cluster)), "every pod was evicted once at least"
    assert (cordoned(cluster), marks(cluster)) == ([], "")
    cluster.took("4 workers in 3 waves, pods evicted first", update.seconds)
    assert_up_changes_nothing(cluster)


def test_a_worker_that_fails_within_the_budget_is_retried_alone(cluster: Stack) -> None:
    cluster.edit("rollout.failureBudgetPercent", 25)
    cluster.edit("kubelet.maxPods", 80)
    cluster.node("worker-1").run(BREAK_KUBELET)
    update = cluster.start("up", "--continue-on-error")
    assert update.end() != 0
    assert begun(update) == [["worker-4"], ["worker-1", "worker-2"], ["worker-3"]]
    assert "worker-1 (failed at " in update.output
    assert cordoned(cluster) == ["worker-1"]

    cluster.node("worker-1").run(MEND_KUBELET)
    again = cluster.up()
    assert begun(again) == [["worker-1"]]
    assert (cordoned(cluster), marks(cluster)) == ([], "")
    assert_up_changes_nothing(cluster)
