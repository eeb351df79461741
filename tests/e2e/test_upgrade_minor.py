"""Story: a cluster of the Kubernetes minor version before goes up to the one of today, with etcd and containerd, under load."""

from __future__ import annotations

import itertools
import sys

from tests.e2e.harness import config, lab, versions
from tests.e2e.harness.assertions import assert_up_changes_nothing
from tests.e2e.harness.load import Load
from tests.e2e.harness.stack import Stack
from tests.e2e.harness.update import Update

SUBNET = "10.93.82.0/24"
OLD = "1.35.4"
MASTERS = [f"master-{n}" for n in (1, 2, 3)]
NODES = {*MASTERS, "worker-1", "worker-2", "worker-3"}


def wanted() -> config.Config:
    out = config.lab("test-upgrade", SUBNET, masters=3, workers=3)
    out["cluster"]["kubernetes"] = OLD
    return versions.with_older_ones(out, SUBNET)


def test_a_minor_version_up_and_no_request_is_lost(stack: Stack) -> None:
    stack.up()
    assert set(versions.of_kubelets(stack).values()) == {f"v{OLD}"}
    assert versions.published(stack) == f"v{OLD}"
    stack.edit("cluster.kubernetes", config.kubernetes())
    with Load(stack, "while upgrading") as load:
        update = stack.up()
    _measure(stack, update)
    load.assert_unharmed()
    _assert_one_by_one(update)


def test_everything_runs_the_new_version_and_says_so(stack: Stack) -> None:
    stack.wait_healthy(NODES, limit_s=60)
    wanted = f"v{config.kubernetes()}"
    assert versions.of_kubelets(stack) == dict.fromkeys(NODES, wanted)
    for component in ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy"):
        found = versions.of_images(stack, component)
        assert len(found) == (len(NODES) if component == "kube-proxy" else len(MASTERS)), found
        assert set(found.values()) == {wanted}
    assert versions.published(stack) == wanted
    assert not [node.name for node in stack.nodes() if _cordoned(stack, node.name)]


def test_nothing_differs_from_the_plan(stack: Stack) -> None:
    told = lab.shell(
        [sys.executable, "-m", "operations.drift", stack.name],
        values=stack.environment,
        timeout_s=120,
    )
    assert "everything is as planned" in told, told


def test_second_up_changes_nothing(stack: Stack) -> None:
    assert_up_changes_nothing(stack)


def _measure(stack: Stack, update: Update) -> None:
    stack.took(f"{OLD} to {config.kubernetes()} of 3 masters and 3 workers", update.seconds)
    took = update.durations()
    for name in sorted(NODES):
        phases = ("node", "master") if name in MASTERS else ("node",)
        spans = [took[f"test-upgrade-{name}-{phase}"] for phase in phases]
        seconds = sum(end - start for start, end in spans)
        stack.took(f"{name}: phases {' and '.join(phases)}", seconds)


def _assert_one_by_one(update: Update) -> None:
    """Each master whole before the next is touched, and all masters before any worker."""
    took = update.durations()
    turns = [
        (
            min(took[f"test-upgrade-{name}-{phase}"][0] for phase in ("node", "master")),
            took[f"test-upgrade-{name}-master"][1],
        )
        for name in MASTERS
    ]
    assert turns == sorted(turns)
    for (_, ended), (begun, _) in itertools.pairwise(turns):
        assert ended <= begun, f"turns of masters overlap: {turns}"
    for worker in NODES - set(MASTERS):
        assert took[f"test-upgrade-{worker}-node"][0] >= turns[-1][1]


def _cordoned(stack: Stack, name: str) -> bool:
    return bool(stack.kubectl("get", "node", name, "-o", "jsonpath={.spec.unschedulable}").strip())
