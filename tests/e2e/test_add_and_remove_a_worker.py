"""Story: one more worker, then one less, the others are not touched; and one that was begun a week ago."""

from __future__ import annotations

import json

from tests.e2e.harness import config, lab
from tests.e2e.harness.assertions import assert_up_changes_nothing
from tests.e2e.harness.faults import engine_death
from tests.e2e.harness.stack import Stack
from tests.e2e.harness.waiting import wait_for

NAME = "test-workers"
CLUSTER_WIDE = {
    f"{NAME}-join-token",
    f"{NAME}-acceptance-attempt",
    f"{NAME}-nodes",
    f"{NAME}-gate",
    f"{NAME}-addon-serving-certificates",  # its address
    f"{NAME}-addon-serving-certificates-attempt",
    f"{NAME}-wave-1",  # a gate that two workers have and one has not; it asks about nobody yet
}


def wanted() -> config.Config:
    return config.lab(NAME, "10.93.9.0/24", masters=1, workers=1)


def test_new_worker_joins_and_touches_no_other_node(cluster: Stack) -> None:
    cluster.settled()
    others = [cluster.node("master-1"), cluster.node("worker-1")]
    processes = {node.name: node.processes() for node in others}
    cluster.edit("pools.worker.count", 2)
    update = cluster.up()
    cluster.took("up that adds a worker", update.seconds)
    strange = {
        name
        for name in update.changes
        if not name.startswith(f"{NAME}-worker-2-") and name not in CLUSTER_WIDE
    }
    assert strange == set()
    assert len(update.changes) - len(CLUSTER_WIDE & set(update.changes)) <= 5
    cluster.wait_healthy({"master-1", "worker-1", "worker-2"}, limit_s=10)
    cluster.settled()
    assert {node.name: node.processes() for node in others} == processes
    assert_up_changes_nothing(cluster)


def test_removed_worker_is_drained_and_gone(cluster: Stack) -> None:
    cluster.edit("pools.worker.count", 1)
    update = cluster.up()
    cluster.took("up that removes a worker", update.seconds)
    strange = {
        name
        for name in update.changes
        if not name.startswith(f"{NAME}-worker-2-") and name not in CLUSTER_WIDE
    }
    assert strange == set()
    cluster.wait_healthy({"master-1", "worker-1"}, limit_s=10)
    assert f"kube-ha-{NAME}-worker-2" not in lab.containers(NAME)
    assert_up_changes_nothing(cluster)


def test_an_add_that_failed_goes_on_a_week_later(cluster: Stack) -> None:
    cluster.edit("pools.worker.count", 2)
    engine_death(cluster, resource=f"{NAME}-worker-2-node")
    # A week later nothing of that run is under way any more, and its token is gone.
    cluster.node("master-1").run("pkill -f '[r]un.sh nodes' || true")
    past = json.dumps({"stringData": {"expiration": "2020-01-01T00:00:00Z"}})
    assert _join_tokens(cluster)
    for token in _join_tokens(cluster):
        cluster.kubectl("-n", "kube-system", "patch", token, "-p", past)
    wait_for(
        "tokens taken away by the cluster",
        lambda: ", ".join(_join_tokens(cluster)),
        limit_s=60,
    )
    week = {
        "PYTHONPATH": str(lab.ROOT / "tests/e2e/harness/clock"),
        "KUBE_HA_TEST_AHEAD_S": "604800",
    }
    cluster.environment |= week
    update = cluster.up()
    cluster.took("up that ends an add of a week ago", update.seconds)
    cluster.wait_healthy({"master-1", "worker-1", "worker-2"}, limit_s=10)
    assert_up_changes_nothing(cluster)


def test_no_token_outlives_the_list_of_nodes(cluster: Stack) -> None:
    assert _join_tokens(cluster) == []


def _join_tokens(stack: Stack) -> list[str]:
    """Secrets by which nodes may join, as kubectl names them."""
    kind = "--field-selector=type=bootstrap.kubernetes.io/token"
    return stack.kubectl("-n", "kube-system", "get", "secrets", kind, "-o", "name").split()
