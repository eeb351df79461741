"""Story: three masters with Cilium: a worker more and a patch of Kubernetes, while clients go on and policies hold."""

from __future__ import annotations

import pytest

from tests.e2e.harness import config, policed, versions
from tests.e2e.harness.assertions import assert_sound
from tests.e2e.harness.load import Load
from tests.e2e.harness.operations import operation
from tests.e2e.harness.stack import Stack

SUBNET = "10.93.145.0/24"
OLD = "1.36.1"
NODES = ("master-1", "master-2", "master-3", "worker-1", "worker-2")


def wanted() -> config.Config:
    made = config.lab("test-cilium-three", SUBNET, masters=3, workers=1)
    made["cluster"]["kubernetes"] = OLD
    return versions.with_network_and_older_ones(made, SUBNET, "cilium")


@pytest.fixture(scope="module")
def cluster(stack: Stack) -> Stack:
    update = stack.up()
    stack.took("up of 3+1 with Cilium", update.seconds)
    policed.begin(stack)
    return stack


@pytest.mark.parametrize(
    ("what", "path", "value"),
    [
        ("a worker joins", "pools.worker.count", 2),
        ("a patch of Kubernetes", "cluster.kubernetes", config.kubernetes()),
    ],
)
def test_clients_go_on_and_policies_hold(
    cluster: Stack, what: str, path: str, value: object
) -> None:
    cluster.edit(path, value)
    with Load(cluster, f"{what}, with Cilium") as load:
        update = cluster.up()
    cluster.took(f"{what}, with Cilium", update.seconds)
    load.assert_unharmed()
    policed.wait_running(cluster)
    policed.assert_hold(cluster)


def test_all_of_it_is_as_wanted(cluster: Stack) -> None:
    assert versions.of_kubelets(cluster) == dict.fromkeys(NODES, f"v{config.kubernetes()}")
    policed.assert_held(cluster)
    assert "everything is as planned" in operation(cluster, "drift")
    assert_sound(cluster)
