"""Versions: which may stand together, where a running cluster may go, and what a reviewer is told."""

from __future__ import annotations

import json

import pytest

from stacks.config.problems import SpecError
from stacks.edits import memory
from stacks.edits.transition import TransitionError, check, remembered
from stacks.explain.changes import changes
from stacks.load import load
from stacks.releases import versions
from tests.unit.configs import lab, planned

OLD: dict[str, object] = {"cluster.kubernetes": "1.35.4"}
OVER = "or make a new stack with '{}' and move the workload over"


def refused(
    then: dict[str, object], now: dict[str, object], **versions_then: str
) -> list[tuple[str, str]]:
    """Refusals of an edit; `versions_then` are what the cluster of before really had."""
    before = json.loads(json.dumps(memory.of(planned(lab(then)))))
    before["versions"] |= versions_then
    if "kubernetes" in versions_then:
        before["config"]["cluster"]["kubernetes"] = versions_then["kubernetes"]
    try:
        check(remembered(before), planned(lab(now)))
    except TransitionError as error:
        return [(path, text) for path, text in error.problems]
    return []


@pytest.mark.parametrize(
    ("then", "now"),
    [
        pytest.param(OLD, {}, id="one minor version up"),
        pytest.param(OLD, {"pools.worker.count": 5}, id="and new workers, who join at the end"),
        pytest.param({}, {"cluster.etcd": "3.6.15"}, id="etcd patch back"),
        pytest.param({"cluster.etcd": "3.6.15"}, {}, id="etcd patch up"),
        pytest.param({"cluster.etcd": "3.5.35"}, {}, id="etcd one minor version up"),
        pytest.param({**OLD, "cluster.etcd": "3.5.35"}, {"cluster.etcd": "3.5.35"}, id="etcd stays"),
        pytest.param({"cluster.containerd": "2.3.6"}, {}, id="containerd up"),
        pytest.param({}, {"cluster.containerd": "2.3.6"}, id="containerd back"),
        pytest.param({"cluster.etcd": "3.6.15"}, {"pools.master.count": 5}, id="etcd patch and new masters"),
    ],
)  # fmt: skip
def test_versions_that_a_cluster_may_go_to(then: dict[str, object], now: dict[str, object]) -> None:
    assert refused(then, now) == []


@pytest.mark.parametrize("then", ["1.36.1", "1.36.9"])
def test_patches_go_both_ways(then: str) -> None:
    assert refused({}, {}, kubernetes=then) == []


REFUSED = [
    ({}, OLD, {}, [("cluster.kubernetes", f"1.35.4 is an older minor version than 1.36.3, and it cannot read all that 1.36.3 wrote to etcd; set it back to '1.36.3', {OVER.format('1.35.4')}")]),
    ({}, {}, {"kubernetes": "1.34.1"}, [("cluster.kubernetes", "from 1.34.1 to 1.36.3 skips 1 minor version(s), and Kubernetes takes each; set it to '1.35.4' and run up, then go on")]),
    ({}, {}, {"kubernetes": "1.33.9"}, [("cluster.kubernetes", "from 1.33.9 to 1.36.3 skips 2 minor version(s), and Kubernetes takes each; set it back to '1.33.9', and take the step to 1.34 with a version of this program that has it")]),
    ({}, {"cluster.etcd": "3.5.35"}, {}, [("cluster.etcd", f"3.5.35 is an older minor version than 3.6.16, and etcd does not go back with its data; set it to '3.6.16', {OVER.format('3.5.35')}")]),
    ({}, {}, {"etcd": "3.4.30"}, [("cluster.etcd", "from etcd 3.4.30 to 3.6.16 skips 1 minor version(s), and etcd takes each; set it to one between, or to '3.4.30'")]),
    ({}, {}, {"etcd": "3.5.25"}, [("cluster.etcd", "from etcd 3.5.25 to 3.6.16: members of 3.5.26 at least can become it; set it to '3.5.26' or a later patch and run up, then go on")]),
    (OLD, {"pools.worker.count": 1}, {}, [("cluster.kubernetes", "changes while worker-2 would leave; take these out first and run up")]),
    (OLD, {"pools.master.count": 4}, {}, [("cluster.kubernetes", "changes its minor version while master-4 would join; do one, then the other")]),
    (OLD, {"nodes": {"master-2": {"generation": 2}}}, {}, [("cluster.kubernetes", "changes its minor version while master-2 would join; do one, then the other")]),
    ({"cluster.etcd": "3.5.35"}, {"pools.master.count": 4}, {}, [("cluster.etcd", "changes its minor version while master-4 would join; do one, then the other")]),
]  # fmt: skip


@pytest.mark.parametrize(("then", "now", "really", "expected"), REFUSED)
def test_versions_that_a_cluster_may_not_go_to(
    then: dict[str, object],
    now: dict[str, object],
    really: dict[str, str],
    expected: list[tuple[str, str]],
) -> None:
    assert refused(then, now, **really) == expected


def test_a_change_that_never_succeeded_is_taken_back_without_a_word() -> None:
    assert refused(OLD, OLD) == []


@pytest.mark.parametrize(
    ("edit", "path", "text"),
    [
        ({"cluster.etcd": "3.7.0"}, "cluster.etcd", "'3.7.0' is none that fits Kubernetes 1.36.3 in artifacts/lock.yaml; it has 3.6.16, 3.6.15, 3.5.35"),
        ({"cluster.containerd": "2.2.9"}, "cluster.containerd", "'2.2.9' is none that fits Kubernetes 1.36.3 in artifacts/lock.yaml; it has 2.3.7, 2.3.6"),
        ({"cluster.containerd": "latest"}, "cluster.containerd", "'latest' is not a version; write major.minor.patch, as '1.36.3'"),
    ],
)  # fmt: skip
def test_a_version_that_does_not_fit_is_refused(
    edit: dict[str, object], path: str, text: str
) -> None:
    with pytest.raises(SpecError) as caught:
        load(lab(edit))
    assert caught.value.problems == ((path, text),)


def test_a_version_that_is_named_is_the_one_of_the_plan() -> None:
    named = planned(lab({"cluster.etcd": "3.6.15", "cluster.containerd": "2.3.6"})).versions
    own = versions.for_kubernetes("1.36.3")
    assert (named.etcd, named.containerd) == ("3.6.15", "2.3.6")
    assert (named.runc, named.kubernetes) == (own.runc, own.kubernetes)
    assert (own.etcd, own.containerd) != (named.etcd, named.containerd)


def test_what_a_newer_kubernetes_does_to_each_node() -> None:
    before = remembered(memory.of(planned(lab(OLD))))
    found = changes(before, planned(lab()))
    said = {node.name: [(a.phase, a.text) for a in node.actions] for node in found.nodes}
    master = (
        "Kubernetes 1.35.4 -> 1.36.3: images are fetched while it serves, then the apiserver drains, "
        "kubelet and control plane change, and it serves again"
    )
    worker = (
        "Kubernetes 1.35.4 -> 1.36.3: pods are evicted, then kubelet restarts as the new version"
    )
    assert ("master", master) in said["master-1"]
    assert ("node", worker) in said["worker-1"]
    assert [text for _, text in said["master-1"]].count(master) == 1
    assert not [text for _, text in said["worker-1"] if "apiserver" in text]


def test_a_master_without_a_member_gets_the_client_of_another_etcd() -> None:
    separate: dict[str, object] = {
        "pools.etcd": {"roles": ["etcd"], "count": 1},
        "pools.master.roles": ["master"],
    }
    before = remembered(memory.of(planned(lab({**separate, "cluster.etcd": "3.6.15"}))))
    found = changes(before, planned(lab(separate)))
    said = {node.name: [action.text for action in node.actions] for node in found.nodes}
    assert said["master-1"] == [
        "etcd's client 3.6.15 -> 3.6.16: nothing restarts",
        "phase master runs again, nothing else restarts",
    ]


def test_pods_are_not_said_to_be_evicted_where_the_config_forbids_it() -> None:
    before = remembered(memory.of(planned(lab(OLD))))
    found = changes(before, planned(lab({"rollout.drain": {"when": "never"}})))
    said = [a.text for node in found.nodes if node.name == "worker-1" for a in node.actions]
    assert (
        "Kubernetes 1.35.4 -> 1.36.3: kubelet restarts as the new version, pods keep running"
        in said
    )
