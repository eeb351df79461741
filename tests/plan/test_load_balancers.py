"""Machines with role loadbalancer: what each is made of, who waits for them, and how the virtual IP moves there and back."""

from __future__ import annotations

import re
from collections.abc import Iterable

import pytest

from tests.plan.graph import Graph
from tests.plan.recording import RunError
from tests.plan.registration import Run
from tests.plan.settled import Stacks, assert_changes, assert_exactly
from tests.unit.configs import adopted, edited, host_key, lab, problems

VIP: dict[str, object] = {"frontDoors.vip": {"address": "10.92.0.5"}}
POOL: dict[str, object] = {"pools.edge": {"roles": ["loadbalancer"], "count": 2}}
EDGE = {**VIP, **POOL}
TLS = {"frontDoors.ingress": {"hosts": ["shop.example.com"]}}
MASTERS = ("master-1", "master-2", "master-3")
EDGES = ("edge-1", "edge-2")
GATE = ["! dev-acceptance-attempt", "~ dev-nodes", "~ dev-gate"]
HOLDERS = ["! dev-vip-holders-attempt", "~ dev-vip-holders"]
# Masters, which run as standby for nothing any more, know whom they would let hear.
TOLD = [*HOLDERS, *(f"~ dev-{node}-vip-peers" for node in MASTERS)]


def stamped(phase: str, nodes: Iterable[str]) -> list[str]:
    return [line for n in nodes for line in (f"! dev-{n}-{phase}-attempt", f"~ dev-{n}-{phase}")]


def again(*nodes: str) -> list[str]:
    return [line for n in nodes for line in (f"! dev-{n}-scripts", f"~ dev-{n}-node")]


def whole(node: str, mark: str = "+") -> list[str]:
    """Every resource of a load balancer: the same for each, however many there are."""
    parts = ("machine", "scripts", "preflight", "node", "keys", "keys-attempt", "vip")
    leaf = ("-key", "-request", "")
    return [
        *(f"{mark} dev-{node}-{part}" for part in (*parts, "vip-attempt")),
        *(f"{mark} dev-pki-{node}-load-balancer{part}" for part in leaf),
    ]


def phase(run: Run, name: str) -> str:
    return str(run.named(name).text("create")).split()[-2]


def test_nobody_but_the_end_of_an_up_waits_for_a_new_one(stacks: Stacks) -> None:
    graph = Graph(stacks.settled(lab(EDGE))[1])
    for node in MASTERS:
        before = graph.before(f"dev-{node}-master") | graph.before(f"dev-{node}-etcd")
        assert not [name for name in before if "edge" in name]
    assert not [name for name in graph.before("dev-nodes") if "edge" in name]
    for node in EDGES:
        last = graph.before(f"dev-{node}-vip")
        assert {"dev-nodes", "dev-vip-holders", f"dev-{node}-keys"} <= last
        assert {f"dev-{master}-vip-peers" for master in MASTERS} <= last
        assert f"dev-{node}-vip" in graph.before("dev-gate")


def test_one_more_touches_it_and_those_that_have_to_hear_of_it(stacks: Stacks) -> None:
    more = {**EDGE, "pools.edge.count": 3}
    changes = [*whole("edge-3"), *TOLD, *stamped("vip", EDGES), *GATE]
    assert_changes(stacks, lab(EDGE), lab(more), changes)
    less = [*whole("edge-3", "-"), *TOLD, *stamped("vip", EDGES), *GATE]
    assert_changes(stacks, lab(more), lab(EDGE), less)


def test_who_exists_hears_of_a_new_one_first(stacks: Stacks) -> None:
    engine, _ = stacks.settled(lab(EDGE))
    run = engine.up(lab({**EDGE, "nodes": {"edge-1": {"generation": 2}}}))
    graph = Graph(run)
    assert "dev-edge-2-vip" in graph.before("dev-edge-1-vip")
    # It gives the address up while the other one hears it, and not by being gone.
    assert "INCARNATIONS=edge-1=2:active\n" in run.named("dev-retire").text("stdin")
    assert "dev-retire" in graph.before("dev-edge-1-machine")


def test_a_change_of_the_masters_reaches_one_after_the_other_before_masters_leave(
    stacks: Stacks,
) -> None:
    engine, _ = stacks.settled(lab(EDGE))
    run = engine.up(lab({**EDGE, "pools.master.count": 1}))
    assert {f"~ dev-{node}-node" for node in EDGES} <= {str(one) for one in run.changes}
    graph = Graph(run)
    assert "dev-edge-1-keys" in graph.before("dev-edge-2-node")
    assert "dev-master-1-master" in graph.before("dev-edge-1-node")
    assert "dev-edge-2-node" in graph.before("dev-nodes")


def test_a_reboot_is_waited_for_before_the_next_one_is_touched(stacks: Stacks) -> None:
    engine, _ = stacks.settled(lab(EDGE))
    run = engine.up(lab({**EDGE, "os.packages": "november"}))
    changed = {str(one) for one in run.changes}
    assert {f"~ dev-{node}-keys" for node in EDGES} <= changed
    assert "OS_PACKAGES=november\n" in run.named("dev-edge-1-keys").text("stdin")
    assert "dev-edge-1-keys" in Graph(run).before("dev-edge-2-scripts")


# --- from masters to a pool, and back


def test_masters_stop_once_the_others_hear_them_and_stand_by(stacks: Stacks) -> None:
    engine, _ = stacks.settled(lab({**VIP, **TLS}))
    run = engine.up(lab({**EDGE, **TLS}))
    graph = Graph(run)
    ready = {f"dev-{node}-{what}" for node in EDGES for what in ("keys", "ingress")}
    for master in MASTERS:
        assert phase(run, f"dev-{master}-vip") == "vip-away"
        assert ready <= graph.before(f"dev-{master}-vip-peers")
        # A load balancer that waits for that word alone begins by it.
        assert f"dev-{master}-vip-peers" in graph.before("dev-vip-holders")
        for node in EDGES:
            assert "dev-vip-holders" in graph.before(f"dev-{node}-vip")
            assert f"dev-{node}-vip" in graph.before(f"dev-{master}-vip")
    said = " ".join(run.messages[-1].split())
    assert "~ master-1 to master-3: keepalived stops" in said
    assert (
        "the VIP 10.92.0.5:8443 is unavailable for about a second, while it moves to edge-1" in said
    )
    assert "is released" not in said
    assert_exactly(engine.up(lab({**EDGE, **TLS})), [])


def test_what_moves_it_to_a_pool_touches_no_worker_and_restarts_nothing(stacks: Stacks) -> None:
    changes = [
        *(line for node in EDGES for line in whole(node)),
        # keepalived is not a package of theirs any more, and its password none of their secrets.
        *again(*MASTERS),
        *(f"~ dev-{node}-master-keys" for node in MASTERS),
        *stamped("master", MASTERS),
        *stamped("vip", MASTERS),
        *(f"+ dev-{node}-vip-peers" for node in MASTERS),
        *HOLDERS,
        *GATE,
    ]
    run = assert_changes(stacks, lab(VIP), lab(EDGE), changes)
    assert not re.search(r"apiserver (drains|restarts)|etcd restarts", run.messages[-1])


def test_on_its_way_haproxy_of_masters_listens_and_keepalived_is_not_stopped(
    stacks: Stacks,
) -> None:
    """Phase node comes minutes before the others begin."""
    engine, _ = stacks.settled(lab({**VIP, **TLS}))
    text = engine.up(lab({**EDGE, **TLS})).named("dev-master-1-node").text("stdin")
    assert "VIP=10.92.0.5:8443\n" in text
    assert "INGRESS=1\n" in text
    assert "bind 10.92.0.5:8443 transparent" in text


def test_a_pool_that_leaves_is_told_once_masters_stand_by(stacks: Stacks) -> None:
    engine, _ = stacks.settled(lab(EDGE))
    run = engine.up(lab(VIP))
    assert "edge" not in run.named("dev-vip-holders").text("stdin")
    graph = Graph(run)
    for master in MASTERS:
        assert phase(run, f"dev-{master}-vip") == "vip"
        assert f"dev-{master}-vip" in graph.before("dev-vip-holders")
    said = " ".join(run.messages[-1].split())
    told = "is not listed any more, and gives up the VIP 10.92.0.5:8443 by the cluster's word"
    assert said.index("run as standby for the VIP") < said.index(told)
    assert_exactly(engine.up(lab(VIP)), [])


@pytest.mark.parametrize(
    ("start", "edit", "breaks"),
    [
        (VIP, EDGE, "dev-edge-1-vip"),
        (VIP, EDGE, "dev-master-2-vip"),
        (EDGE, VIP, "dev-vip-holders"),
    ],
)
def test_a_move_that_broke_off_is_taken_back_whole(
    stacks: Stacks, start: dict[str, object], edit: dict[str, object], breaks: str
) -> None:
    engine, first = stacks.settled(lab(start))
    with pytest.raises(RunError, match="made to fail"):
        engine.up(lab(edit), failing=[breaks])
    back = engine.up(lab(start))
    changed = {str(one) for one in back.changes}
    assert {"~ dev-vip-holders", *(f"~ dev-{node}-vip" for node in MASTERS[:2])} <= changed
    for name in (f"dev-{MASTERS[0]}-vip", "dev-vip-holders"):
        assert back.named(name).text("stdin") == first.named(name).text("stdin")
    if start is VIP:
        # Masters forget those that still hear them only once they are told.
        assert "dev-vip-holders" in Graph(back).before("dev-master-1-vip")
    else:
        # Masters may have it by now: once more they let the others hear, before these are listed.
        heard = {f"dev-{node}-vip-peers" for node in MASTERS}
        assert {f"~ {name}" for name in heard} <= changed
        assert heard <= Graph(back).before("dev-vip-holders")
    assert_exactly(engine.up(lab(start)), [])


def test_a_pool_in_place_of_another_is_no_refusal(stacks: Stacks) -> None:
    engine, _ = stacks.settled(lab(EDGE))
    other = {**VIP, "pools.door": {"roles": ["loadbalancer"], "count": 2, "addressOffset": 40}}
    run = engine.up(lab(other))
    listed = run.named("dev-vip-holders").text("stdin")
    assert "door-1" in listed
    assert "edge" not in listed
    assert_exactly(engine.up(lab(other)), [])


# --- states


def test_a_dead_one_is_told_and_never_dialled(stacks: Stacks) -> None:
    lost = {**EDGE, "nodes": {"edge-2": {"state": "lost"}}}
    changes = [*whole("edge-2", "-"), *TOLD, *stamped("vip", ["edge-1"]), *GATE, "~ dev-retire"]
    # The policy that refuses what lost nodes write names it too.
    changes += ["! dev-addon-lost-nodes-attempt", "~ dev-addon-lost-nodes"]
    assert_changes(stacks, lab(EDGE), lab(lost), changes)


def test_maintenance_is_a_word_to_the_cluster_and_to_keepalived(stacks: Stacks) -> None:
    resting = {**EDGE, "nodes": {"edge-2": {"state": "maintenance"}}}
    assert_changes(stacks, lab(EDGE), lab(resting), [*HOLDERS, *stamped("vip", ["edge-2"]), *GATE])
    engine, _ = stacks.settled(lab(EDGE))
    run = engine.up(lab(resting))
    said = " ".join(run.messages[-1].split())
    assert "give up the VIP 10.92.0.5:8443 for maintenance, HAProxy keeps running" in said
    assert "cordon for maintenance" not in run.messages[-1], "it is not a Node"


def test_a_decommissioned_one_is_told_before_it_is_stopped(stacks: Stacks) -> None:
    engine, _ = stacks.settled(lab(EDGE))
    run = engine.up(lab({**EDGE, "nodes": {"edge-2": {"state": "decommissioned"}}}))
    assert "edge-2" not in run.named("dev-vip-holders").text("stdin")
    assert "+ dev-edge-2-decommission" in {str(one) for one in run.changes}


def test_of_an_adopted_one_nothing_is_done_before_it_leaves(stacks: Stacks) -> None:
    hosts = [
        {"name": f"edge-{n}", "address": f"192.0.2.3{n}", "hostKey": host_key(300 + n)}
        for n in (1, 2)
    ]
    vip = {"frontDoors.vip": {"address": "192.0.2.5"}}
    both = adopted({**vip, "pools.edge": {"roles": ["loadbalancer"], "hosts": hosts}})
    engine, _ = stacks.settled(both)
    run = engine.up(edited(both, {"pools.edge.hosts": hosts[:1]}))
    assert "- prod-edge-2-preflight" in {str(one) for one in run.changes}
    assert "edge-2" not in run.named("prod-vip-holders").text("stdin")


# --- secrets


def test_its_certificate_opens_nothing_but_the_list(stacks: Stacks) -> None:
    _, run = stacks.settled(lab(EDGE))
    request = run.named("dev-pki-edge-1-load-balancer-request")
    assert request.inputs["subject"] == {
        "commonName": "kube-ha:load-balancer:edge-1",
        "organization": "kube-ha:load-balancers",
    }
    manifest = run.named("dev-vip-holders").text("stdin")
    assert 'name: "kube-ha:load-balancers"' in manifest
    assert manifest.count("verbs:") == 1
    keys = run.named("dev-edge-1-keys").text("stdin")
    assert keys.count("PKI_PATH_") == 3
    assert "/etc/kubernetes" not in keys


# --- refused


@pytest.mark.parametrize(
    ("edits", "path", "said"),
    [
        (POOL, "pools.edge.roles", "loadbalancer does nothing without the VIP"),
        (
            {**EDGE, "pools.edge.roles": ["loadbalancer", "worker"]},
            "pools.edge.roles",
            "loadbalancer stands alone",
        ),
        ({**EDGE, "pools.edge.count": 0}, "pools.edge", "nobody would hold the VIP 10.92.0.5"),
        (
            {**EDGE, "nodes": {f"edge-{n}": {"state": "maintenance"} for n in (1, 2)}},
            "pools.edge",
            "nobody would hold the VIP 10.92.0.5",
        ),
        ({**EDGE, "pools.edge.labels": {"a": "b"}}, "pools.edge.labels", "not a Kubernetes node"),
    ],
)
def test_what_makes_no_sense_is_refused(edits: dict[str, object], path: str, said: str) -> None:
    found = dict(problems(lab(edits)))
    assert said in found[path]


def test_two_are_not_made_anew_at_once(stacks: Stacks) -> None:
    engine, _ = stacks.settled(lab(EDGE))
    again = {f"edge-{n}": {"generation": 2} for n in (1, 2)}
    with pytest.raises(RunError, match="edge-1, edge-2 would be recreated at once; raise one"):
        engine.up(lab({**EDGE, "nodes": again}))


def test_the_last_one_leaves_with_its_pool(stacks: Stacks) -> None:
    """So that a count with a digit too few is not a move to the masters."""
    found = dict(problems(lab({**EDGE, "pools.edge.count": 0})))
    assert "take the pool out and masters hold it" in found["pools.edge"]
