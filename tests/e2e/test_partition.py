"""Story: the network between one master and all other nodes breaks, with the virtual IP and etcd's leader on its side: clients are served by the others, alone it accepts nothing, and it is back when the network is."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.e2e.harness import config
from tests.e2e.harness.assertions import assert_sound
from tests.e2e.harness.holders import Holders
from tests.e2e.harness.load import Load
from tests.e2e.harness.node import Node
from tests.e2e.harness.stack import Stack
from tests.e2e.harness.waiting import wait_for

ADDRESS = "10.93.73.5"
DOOR = f"{ADDRESS}:8443"
MASTERS = ("master-1", "master-2", "master-3")
NODES = {*MASTERS, "worker-1"}
_APART_S = 40
_SERVED_AGAIN_MS = 20_000


def wanted() -> config.Config:
    out = config.lab("test-partition", "10.93.73.0/24", masters=3, workers=1)
    out["frontDoors"] = {"vip": {"address": ADDRESS}}
    return out


@pytest.fixture(scope="module")
def stack(stack: Stack) -> Stack:
    stack.up()
    return stack


@pytest.fixture(scope="module")
def holders(stack: Stack) -> Iterator[Holders]:
    with Holders([stack.node(name) for name in MASTERS], ADDRESS) as holders:
        yield holders


def test_the_majority_serves_and_the_one_alone_accepts_nothing(
    stack: Stack, holders: Holders
) -> None:
    alone = stack.node(holders.wait_for_one())
    stack.make_leader(alone.name)
    others = [node for node in stack.nodes() if node.name != alone.name]
    with Load(stack, "partition", outside=[DOOR]) as load:
        address, *rest = (_address(stack, node.name) for node in (alone, *others))
        with _apart(alone, rest):
            wait_for(
                "the address at the majority",
                lambda: "" if set(holders.now()) - {alone.name} else "only where nothing works",
                limit_s=30,
            )
            wait_for("no readiness", lambda: _ready(alone, address), limit_s=30)
            _assert_accepts_nothing(alone, address)
            time.sleep(_APART_S)
            _assert_accepts_nothing(alone, address)
        healed = time.monotonic()
        stack.wait_healthy(NODES)
        holder = holders.wait_for_one()
        back_s = time.monotonic() - healed
        time.sleep(5)
    stack.measured(
        f"the master that was alone is back {back_s:.0f} s after its network; {holder} has the address"
    )
    for place, seen in load.seen().items():
        assert (seen.lost, seen.stale) == (0, 0), f"{place}: {seen}"
        assert seen.longest_gap_ms <= _SERVED_AGAIN_MS, f"{place}: {seen}"
    load.assert_etcd_safe()
    assert holders.now() == [holder]


def test_nothing_is_left_to_do(stack: Stack) -> None:
    assert_sound(stack)


@contextmanager
def _apart(alone: Node, others: list[str]) -> Iterator[None]:
    """Not a packet between it and the others; whoever is outside reaches both sides."""
    rules = [f"INPUT -s {address}" for address in others]
    rules += [f"OUTPUT -d {address}" for address in others]
    alone.run("; ".join(f"iptables -I {rule} -j DROP" for rule in rules))
    try:
        yield
    finally:
        alone.run("; ".join(f"iptables -D {rule} -j DROP" for rule in rules))


def _ready(alone: Node, address: str) -> str:
    code = alone.asked(
        f"curl -s -o /dev/null -w '%{{http_code}}' --max-time 5 --cacert /etc/kube-ha/ca.crt https://{address}:6443/readyz"
    )
    return f"/readyz of {alone.name} says 200" if code.strip() == "200" else ""


def _assert_accepts_nothing(alone: Node, address: str) -> None:
    """Neither its etcd, nor its API server, nor its HAProxy by the address that it has."""
    keys = "--cacert ca.crt --cert client.crt --key client.key"
    etcd = f"cd /etc/kube-ha/etcd && etcdctl --endpoints https://127.0.0.1:2379 {keys} --command-timeout 4s"
    assert "answered" not in alone.asked(f"{etcd} put /kube-ha-test/alone x && echo answered")
    assert "answered" not in alone.asked(f"{etcd} get /kube-ha-test/alone && echo answered")
    for server in (f"{address}:6443", DOOR, "127.0.0.1:3446"):
        kubectl = f"kubectl --kubeconfig /etc/kubernetes/admin.conf --server https://{server}"
        say = "--request-timeout 6s create configmap alone --namespace default"
        assert "answered" not in alone.asked(f"{kubectl} {say} && echo answered"), server


def _address(stack: Stack, name: str) -> str:
    nodes = stack.output("nodes")
    assert isinstance(nodes, dict)
    return str(nodes[name]["address"])
