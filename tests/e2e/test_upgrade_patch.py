"""Story: a patch version of Kubernetes up, and back again, on masters and a worker under load; no pod is moved."""

from __future__ import annotations

import pytest

from tests.e2e.harness import config, pods, versions
from tests.e2e.harness.assertions import assert_up_changes_nothing
from tests.e2e.harness.load import Load
from tests.e2e.harness.stack import Stack

SUBNET = "10.93.38.0/24"
OLD = "1.36.1"
NODES = {"master-1", "master-2", "worker-1"}


def wanted() -> config.Config:
    out = config.lab("test-patch", SUBNET, masters=2, workers=1)
    out["cluster"]["kubernetes"] = OLD
    return versions.with_older_ones(out, SUBNET)


@pytest.fixture(scope="module")
def stack(stack: Stack) -> Stack:
    stack.up()
    pods.deploy(stack)
    return stack


@pytest.mark.parametrize("version", [config.kubernetes(), OLD])
def test_a_patch_goes_up_and_comes_back_and_pods_go_on(stack: Stack, version: str) -> None:
    before = _pods(stack)
    stack.edit("cluster.kubernetes", version)
    with Load(stack, f"to {version}") as load:
        update = stack.up()
    load.assert_unharmed()
    stack.took(f"to {version}, 2 masters and a worker", update.seconds)
    stack.wait_healthy(NODES, limit_s=60)
    assert versions.of_kubelets(stack) == dict.fromkeys(NODES, f"v{version}")
    for component in ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy"):
        assert set(versions.of_images(stack, component).values()) == {f"v{version}"}, component
    assert versions.published(stack) == f"v{version}"
    assert _pods(stack) == before


def test_second_up_changes_nothing(stack: Stack) -> None:
    assert_up_changes_nothing(stack)


def _pods(stack: Stack) -> list[str]:
    """Each pod of a user: which it is, where it is, how often it was restarted."""
    columns = "{.metadata.uid} {.spec.nodeName} {.status.containerStatuses[*].restartCount}"
    path = f'{{range .items[*]}}{columns}{{"\\n"}}{{end}}'
    found = stack.kubectl("-n", pods.NAMESPACE, "get", "pods", "-o", f"jsonpath={path}")
    return sorted(found.splitlines())
