"""What is allowed and seldom meant is warned of: of a config, and of an edit."""

from __future__ import annotations

import pytest

from stacks.edits import memory, transition
from tests.unit.configs import aws, edited, gcp, lab, planned

Config = dict[str, object]
TAINT = [{"key": "a", "effect": "NoExecute"}]
OF_CONFIGS = [
    (gcp({"machines.gcp.sshFrom": ["0.0.0.0/0"]}), "machines.gcp.sshFrom"),
    (aws({"machines.aws.sshFrom": ["8.0.0.0/7"]}), "machines.aws.sshFrom"),
    (lab({"cluster.endpoint": "10.92.0.12"}), "cluster.endpoint"),
    (lab({"etcd.backup.everyHours": 0}), "etcd.backup.everyHours"),
    (lab({"etcd.backup.encrypt": False}), "etcd.backup.encrypt"),
    (lab({"nodes": {f"worker-{n}": {"state": "maintenance"} for n in (1, 2)}}), "nodes"),
    (lab({"pools.master.taints": TAINT, "pools.worker.taints": TAINT}), "pools"),
]


@pytest.mark.parametrize(("raw", "path"), OF_CONFIGS)
def test_a_config_that_leaves_the_cluster_open_or_fragile(raw: Config, path: str) -> None:
    assert path in [path for path, _ in planned(raw).warnings]


@pytest.mark.parametrize(
    "raw",
    [
        lab(),
        gcp(),
        aws(),
        lab({"pools.worker.taints": TAINT}),
        lab({"nodes": {"worker-1": {"state": "maintenance"}}}),
        lab({"cluster.endpoint": "10.92.0.11", "pools.master.count": 1}),
    ],
)
def test_what_is_usual_is_not_warned_of(raw: Config) -> None:
    assert not planned(raw).warnings


APART = {
    "pools.master.roles": ["master"],
    "pools.etcd": {"roles": ["etcd"], "count": 3, "addressOffset": 50},
}
TOGETHER = lab()
OF_EDITS = [
    (lab({"etcd.quotaBackendGib": 8}), lab(), "etcd.quotaBackendGib"),
    (lab(), lab({"controlPlane.podSecurity.enforce": "restricted"}), "controlPlane.podSecurity.enforce"),
    (
        lab({"controlPlane.podSecurity.enforce": "baseline"}),
        lab({"controlPlane.podSecurity.enforce": "restricted"}),
        "controlPlane.podSecurity.enforce",
    ),
    (gcp(), gcp({"machines.gcp.etcdDiskType": "pd-balanced"}), "machines.gcp.etcdDiskType"),
    (edited(TOGETHER, APART), TOGETHER, "pools"),
]  # fmt: skip


@pytest.mark.parametrize(("then", "now", "path"), OF_EDITS)
def test_an_edit_that_may_stop_something(then: Config, now: Config, path: str) -> None:
    before = memory.read(memory.of(planned(then)))
    found = transition.check(before, planned(now)).warnings
    assert path in [path for path, _ in found]
    again = transition.check(before, planned(then)).warnings
    assert path not in [path for path, _ in again]
