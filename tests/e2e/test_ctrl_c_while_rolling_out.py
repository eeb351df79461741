"""Story: Ctrl-C in every phase of a rollout: each time all nodes serve, old or new, the preview says what is left, and a plain up ends it."""

from __future__ import annotations

from tests.e2e.harness import config
from tests.e2e.harness.assertions import assert_up_changes_nothing
from tests.e2e.harness.load import Load
from tests.e2e.harness.stack import Stack
from tests.e2e.harness.waiting import wait_for

NAME = "test-stopped"
NODES = {"master-1", "master-2", "master-3", "worker-1"}
# In the order of the plan: a node's own programs, its member of etcd, its control plane, a worker.
PHASES = ("master-1-node", "master-2-etcd", "master-3-master", "worker-1-node")
OLD, NEW = "110", "90"


def wanted() -> config.Config:
    return config.lab(NAME, "10.93.18.0/24", masters=3, workers=1)


def test_ctrl_c_in_any_phase_leaves_nodes_that_serve(stack: Stack) -> None:
    stack.up()
    stack.edit("etcd.quotaBackendGib", 3)
    stack.edit("controlPlane.apiServerArgs", {"max-requests-inflight": "500"})
    stack.edit("kubelet.maxPods", int(NEW))
    with Load(stack, "stopped") as load:
        for phase in PHASES:
            _stopped_in(stack, phase)
            assert set(_max_pods(stack).values()) <= {OLD, NEW}
            stack.wait_healthy(NODES, limit_s=60)
            if phase == "master-2-etcd":
                left = set(stack.preview().changes)
                assert f"{NAME}-master-1-node" not in left, "what is done is not to be done again"
                assert {f"{NAME}-master-3-master", f"{NAME}-worker-1-node"} <= left, left
        # What ran was ended in order, so the last node is new too. The gate has not seen it yet.
        left = set(stack.preview().changes)
        assert f"{NAME}-gate" in left, left
        assert not {name for name in left if name.endswith(("-node", "-etcd", "-master"))}, left
        stack.up()
        assert _max_pods(stack) == dict.fromkeys(NODES, NEW)
    load.assert_unharmed()
    assert_up_changes_nothing(stack)


def _stopped_in(stack: Stack, phase: str) -> None:
    """An update that a person ends while this phase runs; it ends by itself, and leaves no lock."""
    update = stack.start_up()

    def missing() -> str:
        assert update.alive, f"the update ended before {phase}\n{update.tail()}"
        return "" if update.has_begun(f"{NAME}-{phase}") else f"not there yet: {update.tail(3)}"

    wait_for(f"step {phase}", missing, limit_s=300, every_s=0.1)
    update.interrupt()
    assert update.end(limit_s=200) != 0, f"Ctrl-C in {phase}: {update.tail()}"
    stack.measured(f"Ctrl-C in {phase}: ended after {update.seconds:.0f} s")


def _max_pods(stack: Stack) -> dict[str, str]:
    """What each kubelet of the cluster takes."""
    path = '{range .items[*]}{.metadata.name}={.status.capacity.pods}{"\\n"}{end}'
    rows = stack.kubectl("get", "nodes", "-o", f"jsonpath={path}").split()
    return dict(row.split("=") for row in rows)
