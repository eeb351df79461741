"""Story: upstream's own tests of NetworkPolicies pass with Cilium, on one master and two workers."""

from __future__ import annotations

import time

import pytest

from stacks.networks import cilium
from tests.e2e.harness import config, conformance, versions
from tests.e2e.harness.assertions import assert_sound
from tests.e2e.harness.stack import Stack
from tests.e2e.harness.waiting import wait_for

SUBNET = "10.93.121.0/24"


def wanted() -> config.Config:
    made = config.lab("test-conformance-cilium", SUBNET, masters=1, workers=2)
    made["network"] = {"plugin": "cilium"}
    return versions.with_upstreams_tests(made, SUBNET)


@pytest.fixture(scope="module")
def cluster(stack: Stack) -> Stack:
    update = stack.up()
    stack.took("up of 1+2 with Cilium", update.seconds)
    return stack


def test_upstreams_tests_of_policies_pass(cluster: Stack) -> None:
    start = time.monotonic()
    found = conformance.judge(cluster, "--policies")
    assert found.failed == ()
    # A spec that fails as Cilium documents is skipped in JUnit, with that reason.
    assert set(found.not_run.values()) <= set(cilium.DEVIATES.values())
    assert len(found.passed) >= 40
    cluster.measured(
        f"upstream's tests of NetworkPolicies: {len(found.passed)} pass, {len(found.not_run)} fail"
        " as Cilium documents"
    )
    cluster.took(f"these tests, {conformance.AT_ONCE} at a time", time.monotonic() - start)


def test_nothing_of_it_is_left(cluster: Stack) -> None:
    wait_for("namespaces of tests gone", lambda: " ".join(conformance.left(cluster)), limit_s=60)
    assert_sound(cluster)
