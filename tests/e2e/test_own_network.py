"""Story: a pod network of the user's own, by manifests: proved as one of the product's, with a worker more, and waited for when it is not there."""

from __future__ import annotations

import sys

import pytest
import yaml

from tests.e2e.harness import config, lab, policed
from tests.e2e.harness.assertions import assert_up_changes_nothing
from tests.e2e.harness.lab import ROOT
from tests.e2e.harness.stack import Stack
from tests.e2e.harness.waiting import wait_for

NAME = "test-own-network"
SUBNET = "10.93.134.0/24"
# What a network leaves on a machine: interfaces, and what makes a node Ready.
_LEFT = "ip -o link show | grep -oE 'flannel.1|cni0' || true; ls /etc/cni/net.d"


def wanted() -> config.Config:
    made = config.lab(NAME, SUBNET, masters=1, workers=1)
    example = yaml.safe_load((ROOT / "examples/own-network.yaml").read_text())["config"]
    return {**made, **{key: example[f"kube-ha:{key}"] for key in ("network", "addons")}}


@pytest.fixture(scope="module")
def cluster(stack: Stack) -> Stack:
    update = stack.up()
    stack.took("up of 1+1 with a pod network that the user brings", update.seconds)
    return stack


def test_pods_have_the_users_network_and_no_other(cluster: Stack) -> None:
    cluster.settled()
    found = cluster.kubectl("get", "daemonsets", "-A", "-o", "name").split()
    assert sorted(found) == ["daemonset.apps/kube-flannel-ds", "daemonset.apps/kube-proxy"]
    for node in cluster.nodes():
        assert {*node.run(_LEFT).split()} == {"flannel.1", "cni0", "10-flannel.conflist"}
        assert "mtu 1400" in node.run("ip -o link show cni0")
    assert_up_changes_nothing(cluster)


def test_the_gate_has_proved_it(cluster: Stack) -> None:
    told = verified(cluster)
    assert "connections between pods, nodes and services work" in told, told
    assert "the cluster works: 2 nodes" in told, told


def test_a_worker_more_is_proved_too(cluster: Stack) -> None:
    cluster.edit("pools.worker.count", 2)
    update = cluster.up()
    cluster.took("up that adds a worker", update.seconds)
    assert "the cluster works: 3 nodes" in verified(cluster)
    policed.deploy(cluster)
    _wait_all_pass(cluster, "worker-1", "worker-2")


def test_a_worker_that_leaves_has_nothing_of_it_and_comes_back(cluster: Stack) -> None:
    cluster.set_nodes({"worker-2": {"state": "decommissioned"}})
    cluster.up()
    assert cluster.node("worker-2").run(_LEFT).split() == []
    cluster.set_nodes({})
    cluster.up()
    policed.wait_running(cluster)
    _wait_all_pass(cluster, "worker-2")


def test_an_update_waits_for_what_the_config_names(cluster: Stack) -> None:
    right = ["kube-flannel/daemonset/kube-flannel-ds"]
    cluster.edit("network.own.rollouts", [*right, "kube-flannel/daemonset/nobody"])
    update = cluster.up(fails=True)
    assert "daemonset/nobody in namespace kube-flannel is not rolled out" in update.output
    cluster.edit("network.own.rollouts", right)
    cluster.up()
    assert "the cluster works: 3 nodes" in verified(cluster)
    assert_up_changes_nothing(cluster)


def verified(cluster: Stack) -> str:
    """What `make verify` tells, which is the gate by itself."""
    command = [sys.executable, "-m", "operations.verify", cluster.name]
    told = lab.shell(command, values=cluster.environment, timeout_s=300)
    cluster.settled()
    return told


def _wait_all_pass(cluster: Stack, *workers: str) -> None:
    """Pods on these reach each server, the Service and its name: kube-proxy knows of an address within a second or two."""

    def missing() -> str:
        answers = policed.answers(cluster, "friend", workers)
        assert len(answers) == 4 * len(workers), answers
        return policed.all_pass(answers)

    wait_for("pods, Service and name reached", missing, limit_s=30)
