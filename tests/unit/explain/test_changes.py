"""What the words say of an edit: which node, what happens, what restarts."""

from __future__ import annotations

import json

import pytest

from stacks.edits import memory
from stacks.edits.memory import Memory
from stacks.explain.changes import changes
from stacks.phases import desired
from stacks.phases.effects import OF_VALUE
from tests.unit.configs import adopted, host, lab, planned

RELOAD = "haproxy.cfg: HAProxy reloads, open connections stay"
RESTART = (
    "the apiserver drains and restarts, then controller manager and scheduler where their part "
    "differs"
)
ETCD = (
    "the apiserver beside it drains, etcd restarts after its leadership has moved, then both serve"
)
FOLLOWS = "phase master runs again, nothing else restarts"
VANISHED = "is made again where it has vanished"
AGAIN = "converge.generation: every phase runs again, what is right stays"
MASTERS = ["master-1", "master-2", "master-3"]
ALL = [*MASTERS, "worker-1", "worker-2"]


def recalled(config: dict[str, object]) -> Memory:
    return memory.read(json.loads(json.dumps(memory.of(planned(config)))))


def said(before: dict[str, object], after: dict[str, object]) -> dict[str, list[str]]:
    """Actions by node: what the words say of the edit."""
    found = changes(recalled(before), planned(after))
    assert found.comparable
    return {node.name: [action.text for action in node.actions] for node in found.nodes}


EDITS = [
    pytest.param({}, {}, id="nothing"),
    pytest.param({"network.proxyMode": "iptables"}, {}, id="add-ons touch no node"),
    pytest.param(
        {"controlPlane.apiServerArgs": {"v": "4"}},
        {name: [f"kubeadm.yaml: {RESTART}"] for name in MASTERS},
        id="a flag",
    ),
    pytest.param(
        {"controlPlane.audit.policy": {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "None"}]}},
        {name: ["audit policy: the apiserver drains and restarts"] for name in MASTERS},
        id="an audit policy",
    ),
    pytest.param(
        {"controlPlane.podSecurity": {"enforce": "baseline"}},
        {
            name: ["Pod Security Standards: the apiserver drains and restarts"]
            for name in MASTERS
        },
        id="pod security",
    ),
    pytest.param(
        {"pools.worker.zones": ["a", "b"]},
        {
            "worker-1": ["+ label topology.kubernetes.io/zone=a"],
            "worker-2": ["+ label topology.kubernetes.io/zone=b"],
        },
        id="zones",
    ),
    pytest.param(
        {"etcd.quotaBackendGib": 4}, {name: [f"etcd.env: {ETCD}"] for name in MASTERS}, id="etcd"
    ),
    pytest.param(
        {"nodes.worker-1.labels": {"disk": "nvme"}},
        {"worker-1": ["+ label disk=nvme"]},
        id="a label",
    ),
    pytest.param(
        {"pools.worker.taints": [{"key": "a", "value": "b", "effect": "NoSchedule"}]},
        {name: ["+ taint a=b:NoSchedule"] for name in ("worker-1", "worker-2")},
        id="a taint",
    ),
    pytest.param(
        {"cluster.endpoint": "api.example.com"},
        {
            name: [
                # Its own copy of the names is in there too.
                f"kubeadm.yaml: {RESTART}",
                "new certificates apiserver: apiserver and etcd read them while they run; "
                "controller manager and scheduler restart"
            ]
            for name in MASTERS
        },
        id="another name in certificates",
    ),
    pytest.param(
        {"frontDoors.vip": {"address": "10.92.0.5"}},
        {
            name: [
                "packages: missing ones are installed",
                "haproxy.cfg and VIP: HAProxy reloads, open connections stay",
                "run as standby for the VIP 10.92.0.5:8443",
                "new certificates apiserver: apiserver and etcd read them while they run; "
                "controller manager and scheduler restart",
                FOLLOWS,
            ]
            for name in MASTERS
        },
        id="a virtual IP",
    ),
    pytest.param(
        {"pools.worker.count": 1},
        {
            "worker-2": [
                "evict its pods (PodDisruptionBudgets are respected; emptyDir and local volumes do not move along, pods without a controller end for good)",
                "delete its Node",
                "DELETE the machine and its disks",
            ]
        },
        id="a worker leaves",
    ),
    pytest.param(
        {"pools.worker.count": 3},
        {
            "worker-3": [
                "make the machine",
                "preflight, then packages, kernel settings, HAProxy, containerd, kubelet",
                "join as a worker",
            ]
        },
        id="a worker joins",
    ),
    pytest.param(
        {"pools.master.count": 2},
        {
            **{
                name: [RELOAD, "list of etcd members: nothing restarts", FOLLOWS]
                for name in MASTERS[:2]
            },
            "worker-1": [RELOAD],
            "worker-2": [RELOAD],
            "master-3": [
                "evict its pods (PodDisruptionBudgets are respected; emptyDir and local volumes do not move along, pods without a controller end for good)",
                "leave etcd: removed by the remaining nodes, once they have a quorum without it",
                "delete its Node",
                "DELETE the machine and its disks",
            ],
        },
        id="a master leaves",
    ),
    pytest.param(
        {"converge.generation": 2},
        {
            **{name: [AGAIN, AGAIN, VANISHED, AGAIN, AGAIN] for name in MASTERS},
            **{name: [AGAIN, VANISHED] for name in ("worker-1", "worker-2")},
        },
        id="everything again",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("edit", "expected"), EDITS)
def test_words_for_an_edit(edit: dict[str, object], expected: dict[str, list[str]]) -> None:
    found = said(lab(), lab(edit))
    assert {name: texts for name, texts in found.items()} == expected


def test_what_a_new_version_of_a_component_restarts() -> None:
    old = memory.of(planned(lab()))
    versions = dict(old["versions"])  # type: ignore[call-overload]
    before = memory.read(old | {"versions": versions | {"containerd": "2.2.0", "etcd": "3.6.1"}})
    found = changes(before, planned(lab()))
    texts = {node.name: [action.text for action in node.actions] for node in found.nodes}
    containerd = "containerd 2.2.0 -> 2.3.7: containerd restarts, containers keep running"
    assert texts["worker-1"] == [containerd]
    assert texts["master-1"][:2] == [containerd, f"etcd 3.6.1 -> 3.6.16: {ETCD}"]


def test_another_version_of_the_program_says_what_it_does_otherwise() -> None:
    old = memory.of(planned(lab()))
    scripts = dict(old["scripts"])  # type: ignore[call-overload]
    rendered = json.loads(json.dumps(old["rendered"]))
    rendered["worker"]["node HAPROXY_CFG"] = "other"
    rendered[""]["coredns"] = "other"
    before = memory.read(old | {"scripts": scripts | {"master": "other"}, "rendered": rendered})
    found = changes(before, planned(lab()))
    assert found.program == (
        "other scripts for the phases master: they run again, nothing restarts",
        "writes otherwise as add-ons: coredns",
        "writes otherwise on the machines of pool worker: haproxy.cfg",
    )
    texts = {node.name: [action.text for action in node.actions] for node in found.nodes}
    again = ["phase master runs again, nothing restarts"]
    assert texts == {**dict.fromkeys(MASTERS, again), "worker-1": [RELOAD], "worker-2": [RELOAD]}
    assert found.addons == (("coredns", "its manifest changes: pods are replaced a few at a time"),)


def test_another_way_of_login_restarts_nothing() -> None:
    found = said(adopted(), adopted({"pools.worker.hosts.0.user": "ops"}))
    assert found == {"worker-1": ["way of login: commands run again by it, nothing restarts"]}


def test_another_address_for_ssh_is_a_way_of_login_alone() -> None:
    edit = adopted({"pools.master.hosts.1.sshAddress": "master-2.example.com"})
    words = "way of login: commands run again by it, nothing restarts"
    for before, after in ((adopted(), edit), (edit, adopted())):
        (touched,) = said(before, after).items()
        assert (touched[0], {*touched[1]}) == ("master-2", {words})


def test_a_machine_given_back_keeps_its_data() -> None:
    found = said(adopted(), adopted({"pools.worker.hosts": [host("worker", 1)]}))
    assert (
        found["worker-2"][-1]
        == "stop everything of kube-ha; files and data stay, put the host back to have it again"
    )
    assert list(found) == ["worker-2"]


def test_a_machine_that_is_to_be_wiped_is_so_in_capitals() -> None:
    wipe = {"machines.onRelease": "wipe"}
    found = said(adopted(wipe), adopted({**wipe, "pools.worker.hosts": [host("worker", 1)]}))
    assert found["worker-2"][-1] == "WIPE what is ours, data too; the machine stays"


def test_a_stack_that_never_succeeded_makes_everything() -> None:
    found = changes(None, planned(lab()))
    assert [node.name for node in found.nodes] == ALL
    assert {node.kind for node in found.nodes} == {"new"}
    founds = [
        node.name for node in found.nodes if "bootstrap the etcd cluster" in str(node.actions)
    ]
    assert founds == ["master-1"]


def test_a_memory_without_config_tells_who_joins_and_who_leaves_only() -> None:
    known = recalled(lab())
    machines = {name: kept for name, kept in known.machines.items() if name != "worker-2"}
    oldest = Memory(
        kubernetes="1.36.3",
        fixed={},
        machines=machines,
        away={},
        plan=None,
        level=1,
        scripts={},
        rendered={},
        released={},
    )
    found = changes(oldest, planned(lab({"etcd.quotaBackendGib": 4})))
    assert [node.name for node in found.nodes] == ["worker-2"]
    assert not found.comparable


def test_every_value_has_words() -> None:
    for config in (
        lab(),
        lab(
            {
                "pools.etcd": {"roles": ["etcd"], "count": 1},
                "pools.master": {"roles": ["master"], "count": 1},
            }
        ),
    ):
        plan = planned(config)
        for node in plan.nodes:
            for phase, values in desired.of_phases(plan, node).items():
                assert {(phase, name) for name in values} <= set(OF_VALUE), node.name


def test_load_balancers_that_leave_an_own_failover_are_told_of_masters_too() -> None:
    vip = {"frontDoors.vip": {"address": "10.92.0.5", "failover": "own"}}
    edges = {**vip, "pools.edge": {"roles": ["loadbalancer"], "count": 1}}
    found = said(lab(edges), lab(vip))
    for master in MASTERS:
        assert found[master] == ["load balancers leave; nothing changes on this machine"]
