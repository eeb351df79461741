"""Until when an edit can be taken back: a sentence for each step that cannot, and none where an edit back is all it takes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stacks.edits import memory, transition
from tests.unit.configs import adopted, gcp, lab, planned
from tests.unit.explain.reports import made

Config = dict[str, object]
ADDON = str(Path(__file__).parents[3] / "examples/addons/defaults.yaml")
ONE, LOST = {"pools.master.count": 1}, "and what is on it is lost after the gate"
BACK = "at any time: edit back, then run up again"


def step(subject: str, name: str) -> Config:
    return {f"pki.rotation.{subject}": {"generation": 2, "step": name}}


IRREVERSIBLE: list[tuple[Config, Config, str]] = [
    (lab({"cluster.kubernetes": "1.35.4"}), lab(), "Kubernetes until master-1 has finished: from then on the older minor version is refused"),
    (lab({"cluster.etcd": "3.5.35"}), lab(), "etcd until all members run the new minor version: from then on the older is refused"),
    (
        lab({**ONE, "cluster.etcd": "3.5.35"}), lab(ONE),
        "etcd until master-1 runs the new minor version: from then on the older is refused",
    ),
    (lab(), lab({"pools.worker.count": 1}), f"worker-2 until out of the cluster: from then on only as a new node, {LOST}"),
    (
        lab(), lab({"nodes.worker-2.state": "decommissioned"}),
        "worker-2 until out of the cluster: from then on only as a new node",
    ),
    (
        adopted({"machines.onRelease": "keep"}), adopted({"machines.onRelease": "keep", "nodes.worker-2.state": "removed"}),
        "worker-2 until out of the cluster: from then on only as a new node",
    ),
    (
        adopted({"machines.onRelease": "wipe"}), adopted({"machines.onRelease": "wipe", "nodes.worker-2.state": "removed"}),
        f"worker-2 until out of the cluster: from then on only as a new node, {LOST}",
    ),
    (lab(), lab({"nodes.worker-1.state": "lost"}), "worker-1 only with a raised generation, as a new machine"),
    (lab(), lab({"nodes.worker-1.generation": 2}), "worker-1 until out of the cluster: the data of the old machine is lost"),
    (lab(), lab(step("etcd", "trust")), "no way back from step `trust` of the etcd CA: go on to `issue`"),
    (lab(step("etcd", "trust")), lab(step("etcd", "issue")), BACK),
    (lab(step("etcd", "issue")), lab(step("etcd", "drop")), "no way back from step `drop` of the etcd CA: the former one is gone"),
    (lab(step("seed", "issue")), lab(step("seed", "drop")), BACK),
    (lab({"pki.adminGeneration": 1}), lab({"pki.adminGeneration": 2}), "pki.adminGeneration only rises"),
    (lab(), lab({"os/packages": "june"}), "packages that were updated stay so"),
    (lab({"addons": {"team": {"manifests": [ADDON]}}}), lab(), "add-on team until its objects are deleted: then they are recreated"),
    (gcp({"machines.gcp.apiLoadBalancer": "internal"}), gcp({"machines.gcp.apiLoadBalancer": "none"}), "the internal load balancer until it is deleted: then a new one is made"),
    # Afterwards more than an edit back is needed.
    (
        lab(), lab({"pools.worker.count": 3, "pools.master.count": 5}),
        "an edit back in one step is refused afterwards: master-4, master-5 and worker-3 would leave together",
    ),
    (
        lab({"network.backend": "vxlan"}), lab({"network.backend": "host-gw", "allow": ["network-backend/host-gw"]}),
        "an edit back in one step is refused afterwards: from host-gw to vxlan: until flannel has restarted on every node, pods of "
        "nodes with the one cannot reach pods of nodes with the other",
    ),
    (lab(), lab({"kubelet.maxPods": 60}), BACK),
    (lab(), lab({"pools.worker.count": 3}), BACK),
    (lab({"cluster.etcd": "3.6.15"}), lab(), BACK),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after", "expected"), IRREVERSIBLE)
def test_until_when_an_edit_can_be_taken_back(before: Config, after: Config, expected: str) -> None:
    assert expected in made(before, after).headline.way_back


@pytest.mark.parametrize(("before", "after", "expected"), IRREVERSIBLE)
def test_where_nothing_is_told_the_edit_back_is_accepted(
    before: Config, after: Config, expected: str
) -> None:
    then, known = planned(before), memory.read(json.loads(json.dumps(memory.of(planned(before)))))
    wanted = planned(after)
    applied = memory.read(json.loads(json.dumps(memory.of(wanted, known))))
    if expected == BACK:
        transition.check(applied, then)
    assert bool(transition.refused(applied, then)) <= bool(made(before, after).headline.no_way_back)


def test_the_first_master_that_is_brought_on_decides_whichever_it_is() -> None:
    """Where the first one is absent or new, another one finishes before it."""
    start = {"cluster.kubernetes": "1.35.4", "nodes.master-1.state": "removed"}
    said = made(lab(start), lab({"nodes.master-1.state": "removed"})).headline.way_back
    assert "Kubernetes until master-2 has finished" in said
