"""Story: the engine is killed three times while it makes a cluster, and the cluster comes all the same."""

from __future__ import annotations

from tests.e2e.harness import config
from tests.e2e.harness.assertions import assert_up_changes_nothing
from tests.e2e.harness.faults import engine_death
from tests.e2e.harness.stack import Stack

NODES = {"master-1", "master-2", "worker-1"}


def wanted() -> config.Config:
    return config.lab("test-resume", "10.93.2.0/24", masters=2, workers=1)


def test_up_after_sigkill_in_three_places_ends_in_a_healthy_cluster(stack: Stack) -> None:
    second = stack.node("master-2")
    engine_death(stack, resource="test-resume-master-1-preflight")
    engine_death(stack, resource="test-resume-master-2-etcd", until=lambda: second.runs("etcd"))
    authority = _authority(stack)
    engine_death(
        stack, resource="test-resume-master-2-master", until=lambda: second.runs("kubeadm")
    )
    stack.up()
    assert stack.ready() == dict.fromkeys(NODES, True)
    stack.wait_healthy(NODES, limit_s=60)
    assert _authority(stack) == authority, "the PKI of the first attempt must have been kept"


def test_second_up_changes_nothing(stack: Stack) -> None:
    assert_up_changes_nothing(stack)


def _authority(stack: Stack) -> object:
    """Certificate of the Kubernetes CA, as the state has it."""
    for entry in stack.resources():
        if str(entry["urn"]).endswith("::test-resume-pki-kubernetes-ca"):
            outputs = entry["outputs"]
            return outputs["certPem"] if isinstance(outputs, dict) else None
    raise AssertionError("the PKI of the killed run is not in the state")
