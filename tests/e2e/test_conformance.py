"""Story: upstream's own conformance tests of networks pass on three masters and two workers with flannel; one of a NetworkPolicy, which flannel does not enforce, fails the run."""

from __future__ import annotations

import time

from tests.e2e.harness import config, conformance, versions
from tests.e2e.harness.assertions import assert_sound
from tests.e2e.harness.stack import Stack
from tests.e2e.harness.waiting import wait_for

SUBNET = "10.93.120.0/24"
FOCUS = r"\[sig-network\].*\[Conformance\]"
POLICY = (
    r"Netpol NetworkPolicy between server and client should support a 'default-deny-all' policy"
)
# Five that take minutes, one of which measures how fast the computer is.
SKIP = "session affinity|endpoints latency"
IN_IT = 40  # Kubernetes 1.36 has 42 of them


def wanted() -> config.Config:
    made = config.lab("test-conformance", SUBNET, masters=3, workers=2)
    return versions.with_upstreams_tests(made, SUBNET)


def test_upstreams_tests_of_networks_pass(cluster: Stack) -> None:
    start = time.monotonic()
    found = conformance.judge(cluster, "--focus", FOCUS, "--skip", SKIP)
    seconds = time.monotonic() - start
    assert found.failed == ()
    assert found.not_run == {}
    assert len(found.passed) >= IN_IT
    cluster.measured(
        f"upstream's conformance tests of networks: {len(found.passed)} of {len(found.passed)} pass"
    )
    cluster.took(f"these tests, {conformance.AT_ONCE} at a time", seconds)


def test_a_policy_that_nobody_enforces_fails(cluster: Stack) -> None:
    found = conformance.judge(cluster, "--focus", POLICY, fails=True)
    assert found.passed == ()
    assert len(found.failed) == 1


def test_nothing_of_it_is_left(cluster: Stack) -> None:
    wait_for("namespaces of tests gone", lambda: " ".join(conformance.left(cluster)), limit_s=60)
    assert_sound(cluster)
