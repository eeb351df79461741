"""Story: Cilium carries pods' packets and enforces NetworkPolicies, while a worker joins, a setting changes, a worker dies and leaves, and its agents write of no other node."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.e2e.harness import config, policed, versions
from tests.e2e.harness.assertions import assert_sound
from tests.e2e.harness.operations import operation
from tests.e2e.harness.stack import Stack
from tests.e2e.harness.thief import Thief
from tests.e2e.harness.waiting import wait_for

SUBNET = "10.93.118.0/24"
WORKERS = ("worker-1", "worker-2")
_GROUP = "/apis/cilium.io/v2"


def wanted() -> config.Config:
    made = config.lab("test-cilium", SUBNET, masters=1, workers=2)
    return versions.with_network(made, SUBNET, "cilium")


@pytest.fixture(scope="module")
def cluster(stack: Stack) -> Stack:
    update = stack.up()
    stack.took("up of 1+2 with Cilium", update.seconds)
    policed.deploy(stack)
    return stack


def test_pods_reach_pods_services_and_names_of_all_nodes(cluster: Stack) -> None:
    for kind in ("friend", "stranger"):
        wait_for(f"every {kind} passes", everybody_of(cluster, kind), limit_s=30)
    kept = cluster.kubectl("get", "crd", "-o", "name").split()
    assert "customresourcedefinition.apiextensions.k8s.io/ciliumnetworkpolicies.cilium.io" in kept


def test_a_policy_lets_nobody_in_and_another_one_friends(cluster: Stack) -> None:
    policed.deny_all(cluster)
    for kind in ("friend", "stranger"):
        wait_for(f"no {kind} passes", nobody_of(cluster, kind), limit_s=60)
    policed.allow_friends(cluster)
    wait_for("friends pass", everybody_of(cluster, "friend"), limit_s=60)
    assert not policed.none_passes(policed.answers(cluster, "stranger", WORKERS))
    policed.dial_on(cluster, "worker-1", policed.SERVICE)


def test_agents_write_of_no_other_node(cluster: Stack) -> None:
    thief = Thief(cluster.node("worker-1"))
    token = thief.token_of("kube-system:cilium")

    def put(path: str, change: dict[str, object]) -> tuple[int, str]:
        found = json.loads(cluster.kubectl("get", "--raw", path))
        answer = thief.ask("PUT", path, {**found, **change}, token=token)
        return answer.status, answer.text

    own, other = (f"{_GROUP}/ciliumnodes/{name}" for name in WORKERS)
    assert put(own, {})[0] == 200
    status, text = put(other, {"spec": {}})
    assert status == 422, text
    assert "writes the CiliumNode alone" in text
    listed = json.loads(cluster.kubectl("get", "--raw", f"{_GROUP}/ciliumidentities"))["items"]
    path = f"{_GROUP}/ciliumidentities/{listed[0]['metadata']['name']}"
    status, text = put(path, {"security-labels": {"k8s:kind": "friend"}})
    assert status == 422, text
    assert "does not change which labels" in text
    for method, path in (
        ("GET", "/api/v1/namespaces/kube-system/secrets"),
        ("DELETE", other),
        ("POST", f"{_GROUP}/namespaces/{policed.NAMESPACE}/ciliumnetworkpolicies"),
    ):
        assert thief.ask(method, path, {} if method == "POST" else None, token=token).status == 403


def test_a_worker_more_follows_the_policies(cluster: Stack) -> None:
    cluster.edit("pools.worker.count", 3)
    update = cluster.up()
    cluster.took("up that adds a worker", update.seconds)
    policed.wait_running(cluster)
    assert_policed(cluster, "worker-3")


def test_a_setting_changes_node_by_node_and_policies_hold(cluster: Stack) -> None:
    before = dialled(cluster)
    cluster.edit("network.mtu", 1300)
    update = cluster.up()
    cluster.took("up that changes the MTU", update.seconds)
    assert_policed(cluster, "worker-2")
    passed, failed = (now - was for now, was in zip(dialled(cluster), before, strict=True))
    cluster.measured(
        f"while agents restarted: {passed} of {passed + failed} new connections of a pod to a Service"
    )
    assert passed > failed
    words = ("-n", "kube-system", "get", "cm", "cilium-config", "-o", "jsonpath={.data.mtu}")
    assert cluster.kubectl(*words) == "1350"


def test_a_dead_worker_leaves_nothing_of_itself(cluster: Stack) -> None:
    cluster.node("worker-3").kill()
    cluster.set_nodes({"worker-3": {"state": "lost"}})
    update = cluster.up()
    cluster.took("up that takes a dead worker out", update.seconds)

    def left() -> str:
        rows = cluster.kubectl("get", "ciliumnodes,ciliumendpoints", "-A", "-o", "wide")
        return "\n".join(row for row in rows.splitlines() if "worker-3" in row)

    wait_for("nothing of worker-3 in Cilium's objects", left, limit_s=120)
    assert_policed(cluster, "worker-1")


def test_nothing_differs_and_a_second_up_changes_nothing(cluster: Stack) -> None:
    assert "everything is as planned" in operation(cluster, "drift")
    assert_sound(cluster)
    assert policed.dialled(cluster, "stranger")[0] == 0, "a stranger was let in"


def assert_policed(cluster: Stack, node: str) -> None:
    wait_for(
        f"friends on {node} pass",
        lambda: policed.all_pass(policed.answers(cluster, "friend", [node])),
        limit_s=60,
    )
    assert not policed.none_passes(policed.answers(cluster, "stranger", [node]))


def everybody_of(cluster: Stack, kind: str) -> Callable[[], str]:
    """Who of that kind does not pass, on any node."""
    return lambda: policed.all_pass(policed.answers(cluster, kind, WORKERS))


def nobody_of(cluster: Stack, kind: str) -> Callable[[], str]:
    """Who of that kind passes, on any node."""
    return lambda: policed.none_passes(policed.answers(cluster, kind, WORKERS))


def dialled(cluster: Stack) -> tuple[int, int]:
    """Of the friend that dials all the time."""
    return policed.dialled(cluster, "friend")
