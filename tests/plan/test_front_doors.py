"""Doors: who learns of the virtual IP when, what of it may be seen, who asks at which door."""

from __future__ import annotations

import json

from components.outputs import dns_records, load_balancer
from stacks.cluster.resolve import plan
from stacks.explain import formats
from stacks.load import load
from tests.plan.graph import Graph
from tests.plan.settled import Stacks, assert_exactly
from tests.unit.configs import lab
from toolchain.values import Secret

VIP: dict[str, object] = {"frontDoors.vip": {"address": "10.92.0.5"}}
MASTERS = ("master-1", "master-2", "master-3")


def test_holders_come_after_the_list_of_nodes_and_before_the_gate(stacks: Stacks) -> None:
    graph = Graph(stacks.settled(lab(VIP))[1])
    for node in MASTERS:
        assert "dev-nodes" in graph.before(f"dev-{node}-vip")
        assert f"dev-{node}-master" in graph.before(f"dev-{node}-vip")
        assert f"dev-{node}-vip" in graph.before("dev-gate")


def test_who_exists_hears_of_one_made_anew_before_that_one_can_hold_it(stacks: Stacks) -> None:
    engine, _ = stacks.settled(lab(VIP))
    again = lab({**VIP, "nodes": {"master-1": {"generation": 2}}})
    graph = Graph(engine.up(again))
    assert {"dev-master-2-vip", "dev-master-3-vip"} <= graph.before("dev-master-1-vip")
    assert_exactly(engine.up(again), [])


def test_who_leaves_is_no_node_any_more_before_the_others_forget_it(stacks: Stacks) -> None:
    """By that word of the cluster it gives the address up; it would take it for want of adverts."""
    engine, _ = stacks.settled(lab(VIP))
    run = engine.up(lab({**VIP, "pools.master.count": 2}))
    left = {str(change) for change in run.changes if "-vip" in change.name}
    assert left == {
        *(f"~ dev-master-{n}-vip" for n in (1, 2)),
        *(f"! dev-master-{n}-vip-attempt" for n in (1, 2)),
        *(f"- dev-master-3-vip{part}" for part in ("", "-attempt")),
    }
    assert "10.92.0.13" not in run.named("dev-master-1-vip").text("stdin")
    assert "dev-nodes" in Graph(run).before("dev-master-1-vip")


def test_the_password_travels_with_the_keys_alone(stacks: Stacks) -> None:
    _, run = stacks.settled(lab(VIP))
    holding = {command.name for command in run.commands if "auth_pass" in command.text("stdin")}
    assert holding == {f"dev-{node}-master-keys" for node in MASTERS}
    _, without = stacks.settled(lab())
    assert not [c.name for c in without.commands if "auth_pass" in c.text("stdin")]


def test_the_gate_asks_at_the_virtual_ip(stacks: Stacks) -> None:
    _, run = stacks.settled(lab(VIP))
    assert "DOORS=10.92.0.5:8443\n" in run.named("dev-gate").text("stdin")
    _, without = stacks.settled(lab())
    assert "DOORS" not in without.named("dev-gate").text("stdin")


def test_without_it_the_masters_are_told_to_give_it_up(stacks: Stacks) -> None:
    engine, _ = stacks.settled(lab(VIP))
    run = engine.up(lab())
    changed = {str(change) for change in run.changes}
    for node in MASTERS:
        assert {f"~ dev-{node}-node", f"- dev-{node}-vip"} <= changed
        assert "VIP=" not in run.named(f"dev-{node}-node").text("stdin")
    assert not {name for name in changed if "worker" in name}
    assert run.messages[-1].count(" keepalived stops ") == 1
    assert "the VIP 10.92.0.5:8443 is released: its clients lose the API" in " ".join(
        run.messages[-1].split()
    )


OWN: dict[str, object] = {"cluster.endpoint": "api.example.com:443", "frontDoors.verify": "here"}


def test_a_load_balancer_of_the_user_is_asked_from_here_before_the_gate(stacks: Stacks) -> None:
    engine, run = stacks.settled(lab(OWN))
    graph = Graph(run)
    assert "dev-door" in graph.before("dev-gate")
    assert "dev-nodes" in graph.before("dev-door")
    asked = json.loads(run.named("dev-door").text("stdin"))
    assert (asked["door"], asked["ask"], asked["addresses"]) == ("api.example.com:443", True, [])
    more = lab({**OWN, "pools.master.count": 2})
    assert "~ dev-door" in {str(change) for change in engine.up(more).changes}
    assert_exactly(engine.up(more), [])


def test_or_from_a_master_or_by_nobody(stacks: Stacks) -> None:
    doors = {
        "masters": "DOORS=api.example.com:443\n",
        "none": "",
    }
    for verify, said in doors.items():
        _, run = stacks.settled(lab({**OWN, "frontDoors.verify": verify}))
        stdin = run.named("dev-gate").text("stdin")
        assert (said in stdin) if said else ("DOORS" not in stdin)
        assert not [one for one in run.custom if one.name == "dev-door"]


def test_it_is_told_which_masters_there_are_and_how_to_check_them(stacks: Stacks) -> None:
    made = plan(load(lab()))
    told = load_balancer(made)
    assert told["backends"] == [
        {"name": f"master-{n}", "address": f"10.92.0.1{n}", "port": 6443} for n in (1, 2, 3)
    ]
    assert told["healthCheck"] == {
        "protocol": "https",
        "path": "/readyz",
        "port": 6443,
        "status": 200,
        "intervalMs": 2000,
        "timeoutMs": 3000,
        "fall": 2,
        "rise": 2,
    }


ETCD: dict[str, object] = {"frontDoors.etcd": {"pools": ["worker"]}}


def test_etcd_at_localhost_is_a_change_of_haproxy_on_those_nodes_alone(stacks: Stacks) -> None:
    engine, _ = stacks.settled(lab())
    run = engine.up(lab(ETCD))
    changed = {str(change) for change in run.changes}
    assert {f"~ dev-worker-{n}-node" for n in (1, 2)} <= changed
    assert {"+ dev-pki-etcd-client", "+ dev-pki-etcd-client-key"} <= changed
    assert not {name for name in changed if "master" in name}
    assert_exactly(engine.up(lab(ETCD)), [])


def test_no_machine_gets_the_key_that_opens_etcd(stacks: Stacks) -> None:
    engine, run = stacks.settled(lab(ETCD))
    assert isinstance(engine.outputs["etcdClient"], Secret)
    key = run.named("dev-pki-etcd-client-key").name
    waiting = [one.name for one in run.custom if key in Graph(run).needs(one.name)]
    assert waiting == ["dev-pki-etcd-client-request"]
    assert not [c.name for c in run.commands if "kube-ha-etcd-client" in c.text("stdin")]


def test_records_that_the_user_makes_lead_to_the_vip_or_to_the_masters(stacks: Stacks) -> None:
    named = {"cluster.endpoint": "api.example.com", "frontDoors": {"dns": "unmanaged"}}
    _, run = stacks.settled(lab(named))
    asked = json.loads(run.named("dev-door").text("stdin"))
    masters = ["10.92.0.11", "10.92.0.12", "10.92.0.13"]
    assert (asked["ask"], asked["addresses"]) == (False, masters)
    assert dns_records(plan(load(lab(named))), None) == [
        {"name": "api.example.com", "type": "A", "values": masters}
    ]
    vip = {"dns": "unmanaged", "vip": {"address": "10.92.0.5"}}
    by_vip = plan(load(lab({"cluster.endpoint": "api.example.com:8443", "frontDoors": vip})))
    assert dns_records(by_vip, None)[0]["values"] == ["10.92.0.5"]
    assert "api.example.com -> 10.92.0.5\n" in formats.plan(by_vip)
    assert dns_records(plan(load(lab())), None) == []


TLS: dict[str, object] = {**VIP, "frontDoors.ingress": {"hosts": ["shop.example.com"]}}


def test_certificates_lie_there_before_haproxy_shows_them(
    stacks: Stacks,
) -> None:
    graph = Graph(stacks.settled(lab(TLS))[1])
    for node in MASTERS:
        assert f"dev-{node}-ingress-own" in graph.before(f"dev-{node}-ingress")
        assert f"dev-{node}-ingress" in graph.before("dev-gate")


def test_its_key_travels_in_secret_and_to_masters_alone(stacks: Stacks) -> None:
    _, run = stacks.settled(lab(TLS))
    holding = {c.name for c in run.commands if "/etc/kube-ha/ingress/own.pem" in c.text("stdin")}
    assert holding == {f"dev-{node}-ingress-own" for node in MASTERS}
    assert all(isinstance(run.named(name).inputs["stdin"], Secret) for name in holding)
