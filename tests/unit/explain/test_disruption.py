"""Who notices what of an edit, and why; who does not, and why not."""

from __future__ import annotations

import pytest

from stacks.explain.disruption import Audience
from tests.unit.configs import gcp, lab
from tests.unit.explain.reports import made

Config = dict[str, object]
VIP = {"frontDoors.vip": {"address": "10.92.0.5"}}
INGRESS = {**VIP, "frontDoors.ingress": {"hosts": ["a.example.com", "b.example.com"]}}
EDGES = {**VIP, "pools.edge": {"roles": ["loadbalancer"], "count": 2}}
NAMED = {"cluster.endpoint": "api.example.com"}
BACKEND = {"network.backend": "host-gw", "allow": ["network-backend/host-gw"]}
ONE, TWO = {"pools.master.count": 1}, {"pools.master.count": 2}
FLAG = {"controlPlane.apiServerArgs": {"v": "3"}}
ETCD = {"etcd.quotaBackendGib": 4}
JUNE = {"os/packages": "june"}
BY_TURNS = {**NAMED, "frontDoors.dns": "unmanaged"}
RECORD = {
    **NAMED,
    "frontDoors": {"dns": "managed", "zone": {"domain": "example.com", "id": "my-zone"}},
}


def rotation(subject: str, step: str) -> Config:
    return {f"pki.rotation.{subject}": {"generation": 2, "step": step}}


def noticed(before: Config, after: Config) -> dict[Audience, tuple[str, ...]]:
    return {one.audience: one.notices for one in made(before, after).headline.disruption}


ALONE = "the API does not answer while its only API server restarts (master-1)"
MEMBER = "the API can neither read nor write while etcd's only member restarts (master-1)"
PAIR = "the API can neither read nor write while one of etcd's 2 members restarts (master-1, master-2): without it there is no quorum"
DIRECT = "10.92.0.11:6443 does not answer while its API server restarts (master-1)"
EVICTED = "evicted from master-1 to master-3, worker-1, worker-2, as PodDisruptionBudgets allow, within 300 s a node"
MASTERS = "evicted from master-1 to master-3, as PodDisruptionBudgets allow, within 300 s a node"
WORKERS = "evicted from worker-1, worker-2, as PodDisruptionBudgets allow, within 300 s a node"

NOTICED: list[tuple[Config, Config, dict[Audience, tuple[str, ...]]]] = [
    # API servers and members
    (lab(ONE), lab({**ONE, **FLAG}), {"API clients outside": (ALONE,), "API clients inside": (ALONE,)}),
    (lab(ONE), lab({**ONE, **ETCD}), {"API clients outside": (MEMBER,), "API clients inside": (MEMBER,), "etcd": (MEMBER,)}),
    (lab(TWO), lab({**TWO, **ETCD}), {"API clients outside": (PAIR, DIRECT), "API clients inside": (PAIR,), "etcd": (PAIR,)}),
    (lab(), lab(ETCD), {"API clients outside": (DIRECT,)}),  # the API server beside a member drains first
    (lab(NAMED), lab({**NAMED, **ETCD}), {}),
    (lab(), lab(FLAG), {"API clients outside": (DIRECT,)}),
    (lab(NAMED), lab({**NAMED, **FLAG}), {}),
    (lab(VIP), lab({**VIP, **FLAG}), {}),
    (
        lab(BY_TURNS),
        lab({**BY_TURNS, **FLAG}),
        {"API clients outside": ("api.example.com resolves to every master: a client that gets the one whose API server restarts has to try again",)},
    ),
    # members come and go
    (lab(), lab({"pools.master.count": 5}), {}),
    (lab(ONE), lab(), {}),
    (
        lab(NAMED),
        lab({**NAMED, "nodes": {"master-2": {"state": "lost"}}, "pools.master.count": 4}),
        {
            "etcd": ("once master-2 has left, one more failure ends its quorum (2 of 2 members are up)",),
            "pods": ("deleted with master-2, without an eviction",),
        },
    ),
    # endpoint, names, VIP
    (lab(), lab(VIP), {}),
    (lab(), lab(NAMED), {"API clients outside": (DIRECT,)}),
    (
        lab(NAMED),
        lab(),
        {"API clients outside": ("the endpoint api.example.com:6443 becomes 10.92.0.11:6443: clients of the old one need a new kubeconfig",)},
    ),
    (lab(NAMED), lab({"controlPlane.certSans": ["api.example.com"]}), {}),
    (
        lab({"controlPlane.certSans": ["other.example.com"]}),
        lab(),
        {"API clients outside": (DIRECT, "certificates of the API no longer hold other.example.com")},
    ),
    (lab(VIP), lab(), {"API clients outside": ("the VIP 10.92.0.5:8443 is released: its clients lose the API",)}),
    (
        lab(VIP),
        lab({"frontDoors.vip": {"address": "10.92.0.6"}}),
        {"API clients outside": ("the VIP 10.92.0.5:8443 becomes 10.92.0.6:8443: clients of the old one lose the API",)},
    ),
    (
        lab(EDGES),
        lab({**EDGES, "nodes": {"edge-1": {"state": "maintenance"}}}),
        {"API clients outside": ("the VIP 10.92.0.5:8443 moves, in about a second, if edge-1 has it",)},
    ),
    (
        lab({**EDGES, "nodes": {"edge-1": {"state": "maintenance"}}}),
        lab({**EDGES, "nodes": {"edge-1": {"state": "maintenance"}, "edge-2": {"generation": 2}}}),
        {"API clients outside": ("the VIP 10.92.0.5:8443 is unavailable while edge-2 is replaced",)},
    ),
    (
        lab(EDGES),
        lab({**EDGES, "nodes": {"edge-1": {"state": "maintenance"}, "edge-2": {"generation": 2}}}),
        {"API clients outside": ("the VIP 10.92.0.5:8443 is unavailable for some seconds, while it moves to edge-2",)},
    ),
    (
        lab(VIP),
        lab(EDGES),
        {"API clients outside": ("the VIP 10.92.0.5:8443 is unavailable for about a second, while it moves to edge-1, edge-2",)},
    ),
    (
        gcp(RECORD),
        gcp(NAMED),
        {"API clients outside": ("record api.example.com in zone my-zone is deleted: clients of it lose the API",)},
    ),
    # rotations
    (
        lab({**NAMED, **rotation("kubernetes", "trust")}),
        lab({**NAMED, **rotation("kubernetes", "issue")}),
        {"API clients outside": ("kubeconfigs from before step `trust` do not know the CA that signs from now on",)},
    ),
    (
        lab({**NAMED, **rotation("kubernetes", "issue")}),
        lab({**NAMED, **rotation("kubernetes", "drop")}),
        {"API clients outside": ("kubeconfigs from before step `issue` are refused from now on",)},
    ),
    (
        lab({**NAMED, **rotation("serviceAccount", "issue")}),
        lab({**NAMED, **rotation("serviceAccount", "drop")}),
        {"API clients inside": ("tokens of service accounts from before step `issue` are refused from now on",)},
    ),
    # pods
    (lab({**NAMED, "cluster.kubernetes": "1.35.4"}), lab(NAMED), {"pods": (EVICTED,)}),
    (lab({"cluster.kubernetes": "1.35.4", **NAMED}), lab({**NAMED, "rollout.drain.when": "never"}), {"pods": (MASTERS,)}),
    (lab(NAMED), lab({**NAMED, **JUNE}), {"pods": (EVICTED,)}),
    (lab({**NAMED, **JUNE}), lab(NAMED), {}),
    (lab(), lab({"loadBalancing.maxConnections": 5000}), {}),
    (lab(), lab({"loadBalancing.maxConnections": 5000, "rollout.drain.when": "always"}), {"pods": (WORKERS,)}),
    (lab(), lab({"pools.worker.count": 1}), {"pods": ("evicted from worker-2, which leaves the cluster",)}),
    (lab(), lab({"nodes": {"worker-1": {"generation": 2}}}), {"pods": ("evicted from worker-1 before the replacement, where it still answers",)}),
    (lab(), lab(BACKEND), {"pods": ("pods of different nodes do not reach each other while the pod network changes its backend",)}),
    (
        lab(),
        lab({"network.proxyMode": "iptables"}),
        {"pods": ("connections to Services may break while kube-proxy goes from nftables to iptables",)},
    ),
    (lab(), lab({"pools.worker.taints": [{"key": "a", "effect": "NoSchedule"}]}), {}),
    (
        lab(),
        lab({"pools.worker.taints": [{"key": "a", "effect": "NoExecute"}]}),
        {"pods": ("pods that do not tolerate a new taint NoExecute end on worker-1, worker-2",)},
    ),
    (lab(), lab({"pools.worker.count": 3}), {}),
    # ingress
    (lab(INGRESS), lab(VIP), {"ingress": ("nothing serves ports 80 and 443 any more",)}),
    (
        lab(INGRESS),
        lab({**VIP, "frontDoors.ingress": {"hosts": ["a.example.com"]}}),
        {"ingress": ("its certificate no longer holds b.example.com",)},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after", "expected"), NOTICED)
def test_each_audience_is_told_what_it_notices(
    before: Config, after: Config, expected: dict[Audience, tuple[str, ...]]
) -> None:
    found = noticed(before, after)
    assert {audience: said for audience, said in found.items() if said} == expected


def test_a_removed_first_master_takes_its_endpoint_with_it() -> None:
    found = noticed(lab(), lab({"nodes.master-1": {"state": "removed"}}))
    assert found["API clients outside"] == (
        "the endpoint 10.92.0.11:6443 becomes 10.92.0.12:6443: clients of the old one need a new "
        "kubeconfig",
    )
    assert found["etcd"] == (
        "once master-1 has left, one more failure ends its quorum (2 of 2 members are up)",
    )
    assert found["pods"] == ("evicted from master-1, which leaves the cluster",)


def test_a_load_balancer_that_goes_is_told() -> None:
    found = noticed(gcp(), gcp({"machines.gcp.apiLoadBalancer": "none"}))
    assert (
        "the internal load balancer of the API is deleted, with its address"
        in (found["API clients outside"])
    )


def test_who_goes_by_the_address_of_an_external_load_balancer_keeps_it_with_any_number_of_masters() -> (
    None
):
    outside = {"machines.gcp.apiLoadBalancer": "external", "machines.gcp.deletionProtection": False}
    one = {**outside, "pools.master.count": 1}
    for before, after in ((one, outside), (outside, one)):
        found = noticed(gcp(before), gcp(after))["API clients outside"]
        assert not [text for text in found if "endpoint" in text or "load balancer" in text], found
    named = {**outside, "cluster.endpoint": "api.example.com"}
    assert not [
        text
        for text in noticed(gcp(outside), gcp(named))["API clients outside"]
        if "endpoint" in text
    ]
    becomes = noticed(gcp(), gcp(outside))["API clients outside"]
    assert (
        "the endpoint 10.20.0.5:6443 becomes apiAddress:6443: clients of the old one need a new kubeconfig"
        in becomes
    )


def test_all_workload_ends_where_no_worker_remains() -> None:
    found = noticed(
        lab(),
        lab(
            {
                "pools.spare": {"roles": ["worker"], "count": 1, "addressOffset": 150},
                "pools.worker.count": 0,
            }
        ),
    )
    assert "all workload ends: no worker remains" in found["pods"]


@pytest.mark.parametrize(
    ("edit", "audience", "why"),
    [
        (FLAG, "API clients inside", "3 API servers restart one at a time, the others answer"),
        (ETCD, "API clients inside", "3 API servers restart one at a time, the others answer"),
        ({"kubelet.maxPods": 60}, "API clients inside", "no API server restarts"),
        (ETCD, "etcd", "3 of 3 etcd members restart one at a time"),
        (FLAG, "etcd", "no etcd member restarts"),
        (FLAG, "pods", "no pod is evicted"),
        ({"converge.generation": 2}, "etcd", "only what has drifted restarts"),
    ],
)
def test_an_audience_that_notices_nothing_is_told_why(
    edit: Config, audience: Audience, why: str
) -> None:
    whys = {one.audience: one.why_none for one in made(lab(), lab(edit)).headline.disruption}
    assert whys[audience] == why


def test_ingress_is_an_audience_where_there_is_an_ingress_tier() -> None:
    assert "ingress" not in noticed(lab(), lab(FLAG))
    assert noticed(lab(INGRESS), lab({**INGRESS, **FLAG}))["ingress"] == ()


def test_of_a_new_cluster_nobody_is_told_anything() -> None:
    assert made(None, lab()).headline.disruption == ()


@pytest.mark.parametrize("name", ["master-1", "master-2", "master-3"])
def test_a_member_that_is_back_from_absence_is_up_before_another_one_restarts(name: str) -> None:
    away = lab({**NAMED, f"nodes/{name}": {"state": "absent"}})
    told = {one.audience: one for one in made(away, lab({**NAMED, **ETCD})).headline.disruption}
    assert {one.notices for one in told.values()} == {()}
    assert told["etcd"].why_none == "2 of 3 etcd members restart one at a time"
