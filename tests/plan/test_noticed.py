"""Who notices an update is told, and nobody else: what its commands do to users against the plan's words, both ways.

The rows of docs/operate/change.md, clouds and drawn pairs are held against it too (told.py). Here are edits of which each
has a cause that few others have.
"""

from __future__ import annotations

import json

import pytest

from stacks.edits import memory, transition
from stacks.explain import report
from stacks.phases.scripts import FOLDER
from tests.plan.noticed import Noticed
from tests.plan.noticed_pods import USUAL_DRAIN
from tests.plan.settled import Stacks
from tests.plan.told import Told
from tests.plan.told_pairs import Pair, told
from tests.unit.configs import aws, gcp, lab, planned

Config = dict[str, object]
EVICTED = "evicted, updated within 300 s"
NAMED = {"cluster.endpoint": "api.example.com"}
APART = {
    **NAMED,
    "pools.etcd": {"roles": ["etcd"], "count": 3},
    "pools.master": {"roles": ["master"], "count": 2},
}
VIP = {"frontDoors.vip": {"address": "10.92.0.5"}}
EDGES = {**VIP, "pools.edge": {"roles": ["loadbalancer"], "count": 2}}
INGRESS = {**VIP, "frontDoors.ingress": {"hosts": ["a.example.com", "b.example.com"]}}
DOOR = {**NAMED, "frontDoors.etcd": {"pools": ["worker"]}}
JUNE = {"os/packages": "june"}
FLAG = {"controlPlane.apiServerArgs": {"v": "3"}}
ETCD = {"etcd.quotaBackendGib": 4}
OLD = {**NAMED, "cluster.kubernetes": "1.35.4"}
RECORD = {
    **NAMED,
    "frontDoors": {"dns": "managed", "zone": {"domain": "example.com", "id": "my-zone"}},
}


def states(**said: str) -> Config:
    return {f"nodes.{name.replace('_', '-')}.state": what for name, what in said.items()}


def step(subject: str, name: str) -> Config:
    return {f"pki.rotation.{subject}": {"generation": 2, "step": name}}


# Edit -> kinds of causes that it has, all of them.
EDITS: dict[str, tuple[Config, Config, set[str]]] = {
    "an API server drains before the member beside it restarts": (lab(), lab(ETCD), {"endpoint stops"}),
    "an etcd of its own restarts beside no API server": (
        lab({**APART, "cluster.endpoint": None}), lab({**APART, "cluster.endpoint": None, **ETCD}), set(),
    ),
    "one of two masters is recreated, and the other restarts meanwhile": (
        lab(APART), lab({**APART, **FLAG, "nodes.master-2.generation": 2}), {"no API", "evicted, replaced"},
    ),
    "a second master is there before the first one restarts": (
        lab({**APART, **states(master_1="removed")}), lab({**APART, **FLAG, "nodes.master-1.generation": 2}), set(),
    ),
    "a member dies, and one of the two others restarts": (
        lab(NAMED), lab({**NAMED, **ETCD, **states(master_2="lost")}), {"no quorum", "no spare", "deleted"},
    ),
    "packages without a reboot end no member": (lab(NAMED), lab({**NAMED, **JUNE, "os/reboot": "never"}), {EVICTED}),
    "one member is updated, and not rebooted": (
        lab({**NAMED, "pools.master.count": 1}),
        lab({**NAMED, "pools.master.count": 1, **JUNE, "os/reboot": "never"}),
        {"no API", EVICTED},
    ),
    "masters are drained whatever the rollout says": (lab(OLD), lab({**NAMED, "rollout.drain.when": "never"}), {EVICTED}),
    "masters have time of their own": (lab(OLD), lab({**NAMED, "rollout.drain.timeoutS": 60}), {EVICTED, "evicted, updated within 60 s"}),
    "a wave is held back": (lab(OLD), lab({**NAMED, "rollout": {"holdAfter": 1}}), {EVICTED}),
    "the endpoint is a master that leaves": (
        lab({"cluster.endpoint": "10.92.0.12"}),
        lab({"cluster.endpoint": "10.92.0.12", **states(master_2="removed")}),
        {"endpoint changes", "no spare", "evicted, leaves"},
    ),
    "the first CA signs again": (lab({**NAMED, **step("kubernetes", "issue")}), lab({**NAMED, **step("kubernetes", "trust")}), set()),
    "the second CA signs": (lab({**NAMED, **step("kubernetes", "trust")}), lab({**NAMED, **step("kubernetes", "issue")}), {"CA unknown"}),
    "the first CA goes": (lab({**NAMED, **step("kubernetes", "issue")}), lab({**NAMED, **step("kubernetes", "drop")}), {"kubeconfigs refused"}),
    "load balancers are updated without a reboot": (lab(EDGES), lab({**EDGES, **JUNE, "os/reboot": "never"}), {"VIP moves for packages", EVICTED}),
    "a load balancer is compromised": (lab(EDGES), lab({**EDGES, **states(edge_1="compromised")}), {"VIP moves"}),
    "a load balancer is dead": (lab(EDGES), lab({**EDGES, **states(edge_1="lost")}), set()),
    "somebody else moves the VIP from now on": (
        lab(VIP), lab({"frontDoors.vip": {"address": "10.92.0.5", "failover": "own"}}), {"VIP left to another failover"},
    ),
    "the ingress tier moves to load balancers": (lab(INGRESS), lab({**INGRESS, **EDGES}), {"VIP is handed over"}),
    "a host goes": (lab(INGRESS), lab({**INGRESS, "frontDoors.ingress": {"hosts": ["a.example.com"]}}), {"hosts go"}),
    "the way to etcd is closed": (lab(DOOR), lab(NAMED), {"door closed"}),
    "the way to etcd has another port": (lab(DOOR), lab({**NAMED, "frontDoors.etcd": {"pools": ["worker"], "port": 12379}}), {"door closed"}),
    "the CA of etcd signs": (lab({**DOOR, **step("etcd", "trust")}), lab({**DOOR, **step("etcd", "issue")}), {"etcd's CA unknown"}),
    "the first CA of etcd goes": (lab({**DOOR, **step("etcd", "issue")}), lab({**DOOR, **step("etcd", "drop")}), {"etcd's clients refused"}),
    "a recreated node has a new taint": (
        lab(), lab({"nodes.worker-1": {"generation": 2, "taints": [{"key": "a", "effect": "NoExecute"}]}}), {"evicted, replaced"},
    ),
    "the record is given up": (gcp(RECORD), gcp(NAMED), {"record deleted"}),
    "the balancer is given up": (gcp(), gcp({"machines.gcp.apiLoadBalancer": "none"}), {"balancer deleted", "endpoint changes"}),
    "another balancer": (
        aws(), aws({"machines.aws.apiLoadBalancer": "external", "cluster.endpoint": "api.example.com"}),
        {"balancer deleted", "endpoint changes"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", EDITS)
def test_who_notices_an_edit_is_told_and_nobody_else(stacks: Stacks, name: str) -> None:
    before, after, kinds = EDITS[name]
    found = told(stacks, Pair(name, before, after))
    assert found.then is not None
    assert {cause.kind for cause in Noticed(found.then, found.plan, found.run).causes()} == kinds
    assert found.findings() == []


def test_a_member_that_is_absent_counts_as_down_while_another_one_leaves(stacks: Stacks) -> None:
    five = {**NAMED, "pools.master.count": 5}
    before, after = (
        lab({**five, **states(master_5="absent", **more)}) for more in ({}, {"master_4": "lost"})
    )
    engine, _ = stacks.settled(lab(five))
    engine.up(before)
    then, plan = planned(before), planned(after)
    known = memory.read(json.loads(json.dumps(memory.of(then))))
    said = report.report(known, plan, transition.check(known, plan))
    found = Told(then, plan, said, engine.up(after))
    assert {cause.kind for cause in Noticed(then, plan, found.run).causes()} == {
        "no spare",
        "deleted",
    }
    assert found.findings() == []


def test_a_node_that_says_nothing_is_drained_as_its_script_says() -> None:
    assert f'USUAL_DRAIN="{USUAL_DRAIN}"' in (FOLDER / "update.sh").read_text()
