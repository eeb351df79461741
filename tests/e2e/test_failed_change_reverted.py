"""Story: a change fails half-way on one node, the user takes it back, and the node is as it was."""

from __future__ import annotations

import time

from tests.e2e.harness import config
from tests.e2e.harness.assertions import assert_up_changes_nothing
from tests.e2e.harness.node import Node
from tests.e2e.harness.stack import Stack
from tests.e2e.harness.update import Update

# The kubelet cannot start while this is there.
_BREAK_KUBELET = r"""
mkdir -p /run/systemd/system/kubelet.service.d
printf '[Service]\nExecStartPre=/bin/false\n' >/run/systemd/system/kubelet.service.d/99-broken.conf
systemctl daemon-reload
"""
_MEND_KUBELET = "rm -r /run/systemd/system/kubelet.service.d; systemctl daemon-reload"

# Bounds against waiting for what cannot come, which takes minutes; they are not measure of speed.
_SOON_S = 120


def wanted() -> config.Config:
    return config.lab("test-reverted", "10.93.6.0/24", masters=1, workers=1)


def test_change_that_failed_on_a_worker_is_undone(cluster: Stack) -> None:
    worker, master = cluster.node("worker-1"), cluster.node("master-1")
    before = {node.name: shape(node) for node in (worker, master)}

    cluster.edit("kubelet.maxPods", 60)
    worker.run(_BREAK_KUBELET)
    failed = cluster.up(fails=True)
    took = seconds_since_begin(failed, "test-reverted-worker-1-node")
    cluster.took("from the begin of the phase that fails to the end of the update", took)
    assert took < _SOON_S
    assert "ERROR worker-1: failed" in failed.tail()
    assert "ERROR master-1: worker-1 (failed at " in failed.tail(), "the wait names the cause"
    assert _configured_pods(worker) == "60"
    assert not worker.runs("kubelet"), "the change must have been cut in two"
    assert _configured_pods(master) == "60", "what came before the failure was done"

    worker.run(_MEND_KUBELET)
    cluster.edit("kubelet.maxPods", None)
    cluster.up()
    assert {node.name: shape(node) for node in (worker, master)} == before
    assert _max_pods(cluster) == {"master-1": "110", "worker-1": "110"}
    assert _told(cluster, "worker-1") == ""
    assert_up_changes_nothing(cluster)


def shape(node: Node) -> dict[str, str]:
    """What the node is: its files and what its programs were started with."""
    return node.files() | node.running()


def seconds_since_begin(update: Update, name: str) -> float:
    """From the first step of that resource until now, when the update has just ended."""
    begin, _ = update.durations()[name]
    return time.time() - begin


def _told(stack: Stack, name: str) -> str:
    """What the Node says of a phase that runs there, or that failed."""
    marks = "{.metadata.annotations.kube-ha\\.io/begun}{.metadata.annotations.kube-ha\\.io/failed}"
    return stack.kubectl("get", "node", name, "-o", f"jsonpath={marks}")


def _configured_pods(node: Node) -> str:
    return node.run("sed -n 's/^maxPods: //p' /var/lib/kubelet/config.yaml").strip()


def _max_pods(stack: Stack) -> dict[str, str]:
    """What each node says it takes."""
    path = '{range .items[*]}{.metadata.name}={.status.capacity.pods}{"\\n"}{end}'
    rows = stack.kubectl("get", "nodes", "-o", f"jsonpath={path}").split()
    return dict(row.split("=") for row in rows)
