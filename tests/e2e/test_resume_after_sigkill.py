"""Story: the engine is killed three times while it makes a cluster, and the cluster comes all the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.e2e import config
from tests.e2e.assertions import assert_up_changes_nothing
from tests.e2e.stack import Stack
from tests.e2e.update import Update
from tests.e2e.waiting import wait_for

NODES = {"master-1", "master-2", "worker-1"}


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    wanted = config.lab("test-resume", "10.93.2.0/24", masters=2, workers=1)
    with Stack("resume_after_sigkill", wanted) as stack:
        yield stack


def test_up_after_sigkill_in_three_places_ends_in_a_healthy_cluster(stack: Stack) -> None:
    second = stack.node("master-2")
    _kill_when(
        stack, "preflight of machines just made", lambda up: _begun(up, "master-1-preflight")
    )
    _kill_when(
        stack,
        "etcd of the second member",
        lambda up: _begun(up, "master-2-etcd") and second.runs("etcd"),
    )
    authority = _authority(stack)
    _kill_when(
        stack,
        "kubeadm init of the second master",
        lambda up: _begun(up, "master-2-master") and second.runs("kubeadm"),
    )
    stack.up()
    assert stack.ready() == dict.fromkeys(NODES, True)
    stack.wait_healthy(NODES, limit_s=60)
    assert _authority(stack) == authority, "the PKI of the first attempt must have been kept"


def test_second_up_changes_nothing(stack: Stack) -> None:
    assert_up_changes_nothing(stack)


def _begun(update: Update, phase: str) -> bool:
    return update.has_begun(f"test-resume-{phase}")


def _kill_when(stack: Stack, place: str, reached: Callable[[Update], bool]) -> None:
    update = stack.start_up()

    def missing() -> str:
        assert update.alive, f"ended before: {place}\n{update.tail()}"
        return "" if reached(update) else f"not there yet: {update.tail(5)}"

    try:
        seconds = wait_for(place, missing, limit_s=300, every_s=0.1)
    finally:
        update.sigkill()
    stack.measured(f"killed after {seconds:.0f} s, at: {place}")
    stack.cancel()


def _authority(stack: Stack) -> object:
    """Certificate of the Kubernetes CA, as the state has it."""
    for entry in stack.resources():
        if str(entry["urn"]).endswith("::test-resume-pki-kubernetes-ca"):
            outputs = entry["outputs"]
            return outputs["certPem"] if isinstance(outputs, dict) else None
    raise AssertionError("the PKI of the killed run is not in the state")
