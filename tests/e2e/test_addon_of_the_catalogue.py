"""Story: metrics-server by its name alone: it measures every node and pod, moves to another worker, and leaves without a trace."""

from __future__ import annotations

import json

import pytest

from tests.e2e.harness import config, versions
from tests.e2e.harness.assertions import assert_up_changes_nothing
from tests.e2e.harness.lab import LabError
from tests.e2e.harness.stack import Stack
from tests.e2e.harness.waiting import wait_for

NAME = "test-catalogue"
SUBNET = "10.93.120.0/24"
ADDON = f"{NAME}-addon-metrics-server"
AT_THE_END = {f"{NAME}-acceptance-attempt", f"{NAME}-nodes", f"{NAME}-gate"}
ALL_OF_IT = {ADDON, f"{ADDON}-file-1"} | AT_THE_END
GROUP = "metrics.k8s.io"


def wanted() -> config.Config:
    made = config.lab(NAME, SUBNET, masters=1, workers=1)
    return versions.with_addons(made, SUBNET)


def test_a_cluster_that_lives_gets_it(stack: Stack) -> None:
    stack.up()
    stack.config["addons"] = {"metrics-server": {}}
    stack.write()
    words = " ".join(stack.preview().output.split())
    assert "metrics-server: made: ServiceAccount kube-system/metrics-server" in words, words
    update = stack.up()
    assert set(update.changes) == ALL_OF_IT
    stack.took("up with metrics-server more", update.seconds)
    wait_for("figures of both nodes", lambda: _unmeasured(stack, "nodes", 2), limit_s=90)
    wait_for("figures of pods", lambda: _unmeasured(stack, "pods", 3), limit_s=90)
    assert_up_changes_nothing(stack)


def test_who_may_look_at_a_namespace_sees_what_its_pods_take(stack: Stack) -> None:
    stack.kubectl("create", "namespace", "shop")
    stack.kubectl("-n", "shop", "create", "rolebinding", "looks", "--clusterrole=view", "--user=jane")  # fmt: skip
    path = f"/apis/{GROUP}/v1beta1/namespaces/{{}}/pods"
    own = json.loads(stack.kubectl("get", "--raw", path.format("shop"), "--as=jane"))
    assert own["kind"] == "PodMetricsList"
    with pytest.raises(LabError, match="forbidden"):
        stack.kubectl("get", "--raw", path.format("kube-system"), "--as=jane")


def test_it_is_no_hostage_of_one_worker(stack: Stack) -> None:
    stack.edit("pools.worker.count", 2)
    stack.up()
    wait_for("figures of three nodes", lambda: _unmeasured(stack, "nodes", 3), limit_s=90)
    stack.edit("pools.worker.count", 1)
    stack.up()
    wait_for("figures of two nodes", lambda: _unmeasured(stack, "nodes", 2), limit_s=90)


def test_it_leaves_without_a_trace(stack: Stack) -> None:
    stack.config["addons"] = {}
    stack.write()
    words = " ".join(stack.preview().output.split())
    assert "metrics-server: leaves; deleted at the end: " in words, words
    assert "kept, for you to delete" not in words
    update = stack.up()
    assert set(update.changes) == ALL_OF_IT
    kinds = stack.kubectl("api-resources", "--verbs=list", "-o", "name").split()
    assert not [kind for kind in kinds if kind.endswith(GROUP)]
    asked = [kind for kind in kinds if not kind.startswith("events")]
    every = stack.kubectl("get", ",".join(asked), "--all-namespaces", "-o", "name").split()
    assert [name for name in every if "metrics" in name] == []
    assert stack.up().changes == {}


def _unmeasured(stack: Stack, kind: str, least: int) -> str:
    """Empty when so many have figures that a machine can have."""
    try:
        found = json.loads(stack.kubectl("get", "--raw", f"/apis/{GROUP}/v1beta1/{kind}"))
    except LabError as error:
        return str(error)
    parts = [one.get("usage") or one["containers"][0]["usage"] for one in found["items"]]
    measured = [part for part in parts if int(part["memory"].removesuffix("Ki")) > 0]
    exact = len(found["items"]) == least if kind == "nodes" else len(measured) >= least
    return "" if exact and len(measured) >= least else f"{len(measured)} of {least} {kind}"
