"""Story: Prometheus of the first day tells that a master is dead, by every alert of that and no other, and that it is back."""

from __future__ import annotations

import time

import pytest

from tests.e2e.harness import config, versions
from tests.e2e.harness.lab import LabError
from tests.e2e.harness.prometheus import Prometheus
from tests.e2e.harness.stack import Stack
from tests.e2e.harness.waiting import wait_for

NAME = "test-alerts"
SUBNET = "10.93.131.0/24"
NODES = {"master-1", "master-2", "master-3", "worker-1"}
TOLD = {"ApiServerMissing", "EtcdQuorumAtRisk", "MasterUnseenByNode", "NodesNotReady"}
ALWAYS = {"Watchdog"}


def wanted() -> config.Config:
    made = config.lab(NAME, SUBNET, masters=3, workers=1)
    made["addons"] = {"prometheus": {}}
    return versions.with_addons(made, SUBNET)


@pytest.fixture(scope="module")
def asked(cluster: Stack) -> Prometheus:
    return Prometheus(cluster)


def test_a_new_cluster_has_no_alert(cluster: Stack, asked: Prometheus) -> None:
    wait_for("all nodes", lambda: "" if _count(asked) == len(NODES) else str(_count(asked)), limit_s=150)  # fmt: skip
    wait_for(
        "no alert", lambda: ", ".join(_firing(asked, unknown={"no answer"}) - ALWAYS), limit_s=150
    )
    assert asked.firing() == ALWAYS


def test_a_masters_death_is_told(cluster: Stack, asked: Prometheus) -> None:
    start = time.monotonic()
    cluster.node("master-3").kill()
    wait_for(
        "alerts of a dead master",
        lambda: ", ".join(TOLD - _firing(asked, unknown=set())),
        limit_s=400,
    )
    cluster.took("a master's death until all its alerts fire", time.monotonic() - start)
    assert asked.firing() <= TOLD | ALWAYS


def test_it_ends_once_it_is_back(cluster: Stack, asked: Prometheus) -> None:
    start = time.monotonic()
    cluster.node("master-3").start()
    cluster.wait_healthy(NODES)
    wait_for(
        "end of the alerts", lambda: ", ".join(_firing(asked, unknown=TOLD) & TOLD), limit_s=300
    )
    cluster.took("its return until none of them fires", time.monotonic() - start)


def _count(asked: Prometheus) -> float:
    try:
        return asked.values('count(up{job="node"} == 1)').get((), 0)
    except LabError:
        return 0


def _firing(asked: Prometheus, *, unknown: set[str]) -> set[str]:
    """`unknown` while the server that is asked does not answer."""
    try:
        return asked.firing()
    except LabError:
        return unknown
