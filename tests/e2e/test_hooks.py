"""Story: a webhook is asked before nodes are drained and released, its no keeps pods where they are, and it sees who asks."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator

import pytest
import yaml

from tests.e2e.harness import config, pods
from tests.e2e.harness.assertions import assert_up_changes_nothing
from tests.e2e.harness.stack import Stack
from tests.e2e.harness.waiting import wait_for
from tests.e2e.test_maintenance import cordoned, where
from tests.scripts.webhook import Webhook

SUBNET = "10.93.133"
TOLD = ("event", "node", "by", "caller")
MASTER = ("master-1", "system:node:master-1")


def wanted() -> config.Config:
    return config.lab("test-hooks", f"{SUBNET}.0/24", masters=1, workers=2)


@pytest.fixture(scope="module")
def hook(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Webhook]:
    """At this computer's address in the lab, which is there once the lab is."""
    found = Webhook(tmp_path_factory.mktemp("webhook"), address=f"{SUBNET}.1")
    yield found
    found.stop()


@pytest.fixture(scope="module")
def cluster(stack: Stack, hook: Webhook) -> Stack:
    """It evicts nobody while it is made, so its webhook need not be there yet."""
    stack.config["hooks"] = {"url": hook.url, "timeoutS": 60, "ca": hook.ca.read_text()}
    stack.write()
    stack.up()
    pods.deploy(stack)
    [known] = yaml.safe_load(stack.kubeconfig().read_text())["clusters"]
    ca = hook.folder / "kubernetes.crt"
    ca.write_bytes(base64.b64decode(known["cluster"]["certificate-authority-data"]))
    hook.look = lambda node: state(stack, node)
    hook.start(callers=ca)
    return stack


def state(stack: Stack, node: str) -> tuple[bool, bool]:
    """Whether the Node is cordoned, and whether pods of the Deployment are there."""
    found = json.loads(stack.kubectl("get", "node", node, "-o", "json"))
    return bool(found["spec"].get("unschedulable")), node in where(stack, "somewhere").values()


def home_of(stack: Stack) -> str:
    """A worker that has a pod of the Deployment."""
    return sorted({name for name in where(stack, "somewhere").values() if "worker" in name})[0]


def test_without_its_consent_no_pod_is_evicted(cluster: Stack, hook: Webhook) -> None:
    home = home_of(cluster)
    cluster.set_nodes({home: {"state": "maintenance", "drain": True}})
    hook.answers = [403]
    with pods.untouched(cluster, ["master-1", "worker-1", "worker-2"]):
        failed = cluster.up(fails=True)
    assert f"the hook beforeDrain of {home} at {hook.url}: HTTP 403 not now" in failed.tail()
    assert cordoned(cluster) == {home}
    assert hook.taken(*TOLD, "seen") == [("beforeDrain", home, *MASTER, (True, True))]


def test_one_that_is_not_ready_yet_is_asked_until_it_is(cluster: Stack, hook: Webhook) -> None:
    [home] = cluster.config["nodes"]
    hook.answers = [503, 503, 200]
    cluster.up()
    assert hook.taken(*TOLD, "seen") == [("beforeDrain", home, *MASTER, (True, True))] * 3
    assert home not in where(cluster, "somewhere").values()
    cluster.set_nodes({})
    cluster.up()
    assert hook.taken(*TOLD, "seen") == [("afterUncordon", home, *MASTER, (False, False))]


def test_a_node_that_is_updated_asks_itself(cluster: Stack, hook: Webhook) -> None:
    cluster.edit("rollout.drain.when", "always")
    cluster.edit("kubelet.maxPods", 100)
    cluster.up()
    told = hook.taken(*TOLD)
    for name in ("worker-1", "worker-2"):
        caller = (name, name, f"system:node:{name}")
        mine = [one for one in told if one[1] == name]
        assert mine == [("beforeDrain", *caller), ("afterUncordon", *caller)]
    cluster.edit("rollout.drain.when", None)
    cluster.up()
    assert hook.taken(*TOLD) == []
    assert_up_changes_nothing(cluster)


def test_it_is_asked_again_before_a_drained_node_is_released(cluster: Stack, hook: Webhook) -> None:
    cluster.edit("pools.worker.count", 1)
    cluster.up()
    [drain, release] = hook.taken(*TOLD, "reason", "seen")
    assert drain[:5] == ("beforeDrain", "worker-2", *MASTER, "leaves")
    assert release == ("beforeRelease", "worker-2", *MASTER, "leaves", (True, False))


def test_a_dead_machine_is_released_with_its_consent_too(cluster: Stack, hook: Webhook) -> None:
    cluster.node("worker-1").kill()
    wait_for(
        "worker-1 not ready",
        lambda: "it still is" if cluster.ready()["worker-1"] else "",
        limit_s=120,
    )
    cluster.set_nodes({"worker-1": {"state": "lost"}})
    cluster.edit("pools.worker.count", 2)
    hook.answers = [409, 200]
    failed = cluster.up(fails=True)
    assert "the hook beforeRelease of worker-1" in failed.tail()
    cluster.up()
    assert hook.taken(*TOLD, "reason") == [("beforeRelease", "worker-1", *MASTER, "lost")] * 2
    cluster.wait_healthy({"master-1", "worker-2"})
