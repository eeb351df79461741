"""Story: etcd goes up a minor version, then containerd a patch, under load; and etcd does not go back."""

from __future__ import annotations

from tests.e2e.harness import config, pods, versions
from tests.e2e.harness.assertions import assert_up_changes_nothing
from tests.e2e.harness.load import Load
from tests.e2e.harness.stack import Stack

SUBNET = "10.93.84.0/24"
MASTERS = {"master-1", "master-2", "master-3"}
NODES = {*MASTERS, "worker-1"}
OLD_ETCD, OLD_CONTAINERD = "3.5.35", "2.3.6"


def wanted() -> config.Config:
    out = config.lab("test-etcd-up", SUBNET, masters=3, workers=1)
    out["cluster"] |= {"etcd": OLD_ETCD, "containerd": OLD_CONTAINERD}
    return versions.with_older_ones(out, SUBNET)


def test_a_minor_version_of_etcd_up_and_nothing_is_lost(stack: Stack) -> None:
    stack.up()
    pods.deploy(stack)
    assert versions.of_etcd(stack) == dict.fromkeys(MASTERS, OLD_ETCD)
    stack.edit("cluster.etcd", None)
    with Load(stack, "while etcd changes") as load, pods.untouched(stack, {"worker-1"}):
        update = stack.up()
    stack.took(f"etcd {OLD_ETCD} to 3.6 of 3 members", update.seconds)
    load.assert_unharmed()
    assert set(versions.of_etcd(stack).values()) == {stack_version(stack, "etcd")}


def test_etcd_does_not_go_back(stack: Stack) -> None:
    stack.edit("cluster.etcd", OLD_ETCD)
    refused = stack.preview(fails=True)
    assert f"{OLD_ETCD} is an older minor version than" in refused.output
    stack.edit("cluster.etcd", None)


def test_another_containerd_leaves_containers_alone(stack: Stack) -> None:
    before = containers(stack)
    stack.edit("cluster.containerd", None)
    with Load(stack, "while containerd changes") as load:
        update = stack.up()
    stack.took(f"containerd {OLD_CONTAINERD} to the one of the set, 4 nodes", update.seconds)
    load.assert_unharmed()
    wanted = f"containerd://{stack_version(stack, 'containerd')}"
    assert versions.of_runtimes(stack) == dict.fromkeys(NODES, wanted)
    assert containers(stack) == before


def test_second_up_changes_nothing(stack: Stack) -> None:
    assert_up_changes_nothing(stack)


def stack_version(stack: Stack, component: str) -> str:
    """The version of the set that the stack's Kubernetes has."""
    return versions.of_the_set(str(stack.config["cluster"]["kubernetes"]), component)


def containers(stack: Stack) -> dict[str, dict[str, str]]:
    """By node, every container with its process."""
    stack.settled()
    units = {"etcd", "kubelet", "containerd", "haproxy"}
    return {
        node.name: {name: pid for name, pid in node.processes().items() if name not in units}
        for node in stack.nodes()
    }
