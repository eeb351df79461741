"""What a reviewer reads first: the edit in a line, its nodes, and until when it can be taken back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from stacks.edits import memory, transition
from stacks.explain import report, settings
from tests.unit.configs import adopted, edited, gcp, host_key, lab, planned, with_store
from tests.unit.explain.reports import made

ADDON = str(Path(__file__).parents[3] / "examples/addons/defaults.yaml")
VIP: dict[str, object] = {"frontDoors.vip": {"address": "10.92.0.5"}}
EDGES = {"pools.edge": {"roles": ["loadbalancer"], "count": 2}}


def states(**of: str) -> dict[str, object]:
    return {"nodes": {name.replace("_", "-"): {"state": state} for name, state in of.items()}}


def rests(**of: object) -> dict[str, object]:
    return {"nodes": {"worker-1": {"state": "maintenance", **of}}}


EDITS: list[tuple[dict[str, object], dict[str, object], tuple[str, ...]]] = [
    ({"cluster.kubernetes": "1.35.4"}, {}, ("Upgrade Kubernetes 1.35.4 -> 1.36.3",)),
    ({"cluster.etcd": "3.5.35"}, {}, ("Upgrade etcd 3.5.35 -> 3.6.16",)),
    ({}, {"cluster.containerd": "2.3.6"}, ("Downgrade containerd 2.3.7 -> 2.3.6",)),
    ({}, {"pools.worker.count": 3}, ("Add 1 worker (worker-3)",)),
    ({}, {"pools.worker.count": 9}, ("Add 7 workers (worker-3 to worker-9)",)),
    ({}, {"pools.master.count": 5}, ("Add 2 masters (master-4, master-5)",)),
    ({}, {"pools.worker.count": 1}, ("Remove 1 worker (worker-2)",)),
    (VIP, {**VIP, **EDGES}, ("Add 2 load balancers (edge-1, edge-2)",)),
    ({}, {"nodes": {"worker-1": {"generation": 2}}}, ("Replace 1 worker (worker-1)",)),
    ({}, {**states(master_2="lost"), "pools.master.count": 4}, ("Replace lost master-2 with master-4",)),
    ({}, {**states(worker_1="lost"), "pools.master.count": 5}, ("Remove lost worker-1", "Add 2 masters (master-4, master-5)")),
    ({}, states(worker_1="compromised"), ("Remove compromised worker-1",)),
    ({}, states(worker_1="decommissioned"), ("Decommission 1 worker (worker-1)",)),
    ({}, states(worker_1="maintenance"), ("Begin maintenance of worker-1",)),
    (states(worker_1="maintenance"), rests(drain=True), ("Change maintenance of worker-1",)),
    (rests(keepPodsS=60), rests(keepPodsS=90), ("Change maintenance of worker-1",)),
    (rests(drain=True), {}, ("End maintenance of worker-1",)),
    (states(worker_1="maintenance"), {}, ("End maintenance of worker-1",)),
    ({}, {"pools.worker.labels": {"disk": "nvme"}}, ("Change labels of worker-1, worker-2",)),
    ({}, {"pools.worker.zones": ["a", "b"]}, ("Change zone of worker-1, worker-2",)),
    ({}, {"nodes.master-1.taints": [{"key": "a", "effect": "NoSchedule"}]}, ("Change taints of master-1",)),
    ({}, {"loadBalancing.maxConnections": 8000}, ("Change HAProxy settings: maxConnections 4000 -> 8000",)),
    ({}, {"kubelet.maxPods": 60, "etcd.snapshotCount": 20000}, ("Change etcd settings: snapshotCount 10000 -> 20000", "Change kubelet settings: maxPods 110 -> 60")),
    ({}, {"controlPlane.apiServerArgs": {"v": "4"}}, ("Change control plane settings: apiServerArgs.v unset -> 4",)),
    ({}, {"network.proxyMode": "iptables"}, ("Change network settings: proxyMode nftables -> iptables",)),
    ({}, {"cluster.endpoint": "api.example.com"}, ("Change API endpoint: unset -> api.example.com",)),
    ({}, VIP, ("Add virtual IP (address 10.92.0.5)",)),
    (VIP, {}, ("Remove virtual IP",)),
    ({}, with_store(), ("Change etcd backups: objectStore added",)),
    ({}, {"pki.rotation.etcd": {"generation": 2, "step": "trust"}}, ("Rotate the etcd CA: generation 2, step trust",)),
    ({}, {"addons": {"team": {"manifests": [ADDON]}}}, ("Add add-on team",)),
    ({"addons": {"team": {"manifests": [ADDON]}}}, {}, ("Remove add-on team",)),
    ({}, {"os/packages": "june"}, ("Update packages of the operating system (june)",)),
    ({"os/packages": "june"}, {}, ("Update packages of the operating system no more",)),
    ({}, {"converge.generation": 2}, ("Run every phase again (converge.generation 2)",)),
    ({}, {"rollout": {"parallel": 2}}, ("Change rollout: parallel 10% -> 2",)),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after", "expected"), EDITS)
def test_an_edit_has_its_verb(
    before: dict[str, object], after: dict[str, object], expected: tuple[str, ...]
) -> None:
    assert made(lab(before), lab(after)).headline.edits == expected


def test_a_new_cluster_is_created() -> None:
    assert made(None, lab()).headline.edits == (
        "Create cluster dev: Kubernetes 1.36.3, 3 masters, 3 etcd members, 2 workers",
    )
    assert made(None, lab()).headline.way_back == "at any time: pulumi destroy"
    back = "at any time: pulumi state unprotect --all, then pulumi destroy"
    assert made(None, adopted()).headline.way_back == back


def test_ssh_is_told_of_all_machines_or_of_those_that_have_their_own() -> None:
    user = edited(adopted(), {"machines.ssh.user": "ops"})
    assert made(adopted(), user).headline.edits == ("Change machines: ssh.user root -> ops",)
    key = {"pools.worker.hosts.0.hostKey": host_key(900), "allow": ["host-key/worker-1"]}
    assert made(adopted(), adopted(key)).headline.edits == ("Change SSH access of worker-1",)


def test_a_value_that_is_long_or_secret_is_not_shown() -> None:
    spec = planned(lab()).spec
    secret = spec.proxy.model_copy(update={"https": "http://u:hunter2@h"})
    [edit] = settings.changed(spec, spec.model_copy(update={"proxy": secret}))
    assert edit == "Change proxy: https unset -> http://***@h"
    long = {"controlPlane.apiServerArgs": {"event-ttl": "0h" * 20 + "1h"}}
    [edit] = made(lab(), lab(long)).headline.edits
    assert edit == "Change control plane settings: apiServerArgs.event-ttl"


def test_what_another_version_of_the_program_does_is_no_edit_of_the_users() -> None:
    known, wanted = memory.read(memory.of(planned(lab()))), planned(lab())
    old = replace(known, scripts={**known.scripts, "node": "another"})
    said = report.report(old, wanted, transition.check(old, wanted))
    assert said.headline.edits == ("Apply what this version of the program does differently",)


def test_nodes_are_counted_those_that_stay_too() -> None:
    edit = {
        "pools.worker.count": 4,
        "nodes": {"worker-1": {"generation": 2}, "worker-2": {"state": "lost"}},
    }
    assert made(lab(), lab(edit)).headline.nodes.words == (
        "2 to add, 0 to change, 1 to replace, 1 to remove, 3 unchanged"
    )


BACK = "at any time: edit back, then run up again"
WAYS: list[tuple[dict[str, object], dict[str, object], str]] = [
    ({}, {"kubelet.maxPods": 60}, BACK),
    ({}, {"pools.worker.count": 3}, BACK),
    ({}, {"cluster.etcd": "3.6.15"}, BACK),
    ({"cluster.kubernetes": "1.35.4"}, {}, "Kubernetes until master-1 has finished: from then on the older minor version is refused"),
    ({"cluster.etcd": "3.5.35"}, {}, "etcd until all members run the new minor version: from then on the older is refused"),
    ({}, {"pools.worker.count": 1}, "worker-2 until out of the cluster: from then on only as a new node, and what is on it is lost after the gate"),
    ({}, states(worker_1="lost"), "worker-1 only with a raised generation, as a new machine"),
    ({}, {"nodes": {"worker-1": {"generation": 2}}}, "worker-1 until out of the cluster: the data of the old machine is lost"),
    ({}, {"pki.rotation.etcd": {"generation": 2, "step": "trust"}}, "no way back from step `trust` of the etcd CA: go on to `issue`"),
    ({"pki.rotation.etcd": {"generation": 2, "step": "trust"}}, {"pki.rotation.etcd": {"generation": 2, "step": "issue"}}, BACK),
    ({"pki.rotation.etcd": {"generation": 2, "step": "issue"}}, {"pki.rotation.etcd": {"generation": 2, "step": "drop"}}, "no way back from step `drop` of the etcd CA: the former one is gone"),
    ({"pki.rotation.seed": {"generation": 2, "step": "issue"}}, {"pki.rotation.seed": {"generation": 2, "step": "drop"}}, BACK),
    ({}, {"os/packages": "june"}, "packages that were updated stay so"),
    ({"addons": {"team": {"manifests": [ADDON]}}}, {}, "add-on team until its objects are deleted: then they are recreated"),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after", "expected"), WAYS)
def test_it_says_until_when_an_edit_can_be_taken_back(
    before: dict[str, object], after: dict[str, object], expected: str
) -> None:
    assert made(lab(before), lab(after)).headline.way_back == expected


def test_a_load_balancer_of_a_cloud_is_another_one_after_a_way_back() -> None:
    said = made(gcp(), gcp({"machines.gcp.apiLoadBalancer": "none"}))
    assert "the internal load balancer until it is deleted" in said.headline.way_back
