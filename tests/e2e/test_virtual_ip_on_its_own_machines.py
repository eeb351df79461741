"""Story: two load balancers have the virtual IP: HAProxy reloads, the holder dies and comes back, one is taken out, one hears nothing, one is replaced."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.e2e.harness import config
from tests.e2e.harness.assertions import assert_up_changes_nothing
from tests.e2e.harness.doors import assert_reloads_lose_nothing, assert_served_again, away_ms
from tests.e2e.harness.holders import Holders
from tests.e2e.harness.load import Load
from tests.e2e.harness.stack import Stack
from tests.e2e.harness.waiting import wait_for

ALONE = "the address is handed over within 2 s"
ADDRESS = "10.93.63.5"
DOOR = f"{ADDRESS}:8443"
EDGES = ("edge-1", "edge-2")
NODES = {"master-1", "worker-1"}
# At the holder's last word another one takes it, without a wait for adverts.
_HANDED_OVER_MS = 2000
LIST = ("-n", "kube-system", "patch", "configmap", "kube-ha-vip-holders", "--type", "merge", "-p")
# What it may see with the certificate that it asks by.
ASK = (
    "curl -s -o /dev/null -w '%{http_code}' --cacert /etc/kube-ha/ca.crt "
    "--cert /etc/kube-ha/load-balancer.crt --key /etc/kube-ha/load-balancer.key "
    "https://127.0.0.1:3446/api/v1"
)


def wanted() -> config.Config:
    out = config.lab("test-vip-edges", "10.93.63.0/24", masters=1, workers=1)
    out["pools"]["edge"] = {"roles": ["loadbalancer"], "count": 2}
    out["frontDoors"] = {"vip": {"address": ADDRESS}}
    return out


@pytest.fixture(scope="module")
def holders(stack: Stack) -> Iterator[Holders]:
    stack.up()
    with Holders([stack.node(name) for name in (*EDGES, "master-1")], ADDRESS) as holders:
        yield holders


def test_one_of_them_has_it_and_none_is_a_node(stack: Stack, holders: Holders) -> None:
    assert holders.wait_for_one() in EDGES
    assert set(stack.ready()) == NODES  # by the kubeconfig's own context, which is the address
    assert not stack.node("master-1").runs("keepalived")
    for name in EDGES:
        edge = stack.node(name)
        assert not edge.runs("kubelet")
        assert edge.run(f"{ASK}/namespaces/kube-system/configmaps/kube-ha-vip-holders") == "200"
        for denied in ("/nodes", "/namespaces/kube-system/configmaps", "/secrets"):
            assert edge.run(f"{ASK}{denied}") == "403", denied


def test_ten_reloads_of_haproxy_lose_no_connection(stack: Stack, holders: Holders) -> None:
    assert_reloads_lose_nothing(stack, holders, DOOR)


def test_a_holder_that_dies_is_replaced_and_takes_it_from_nobody_when_it_returns(
    stack: Stack, holders: Holders
) -> None:
    before = holders.moves()
    holder = stack.node(holders.wait_for_one())
    with Load(stack, "holder dies", outside=[DOOR]) as load:
        holder.kill()
        moved_to = holders.wait_for_one(but=holder.name)
        time.sleep(3)
    assert_served_again(load)
    holder.start()
    holders.watch(holder)
    wait_for(
        "it runs as standby again",
        lambda: "" if holder.runs("keepalived") else "keepalived is off",
        limit_s=60,
    )
    time.sleep(5)
    assert holders.moves() == [*before, moved_to], "it must not move again when the machine returns"
    stack.measured(
        f"load balancer of the holder killed: VIP away for at most {away_ms(holders)} ms"
    )


def test_one_that_the_cluster_does_not_list_gives_it_up_and_does_not_start(
    stack: Stack, holders: Holders
) -> None:
    """As the next update would say of one that is lost; here it is alive to hear it."""
    before = holders.moves()
    holder = stack.node(holders.wait_for_one())
    stack.kubectl(*LIST, f'{{"data":{{"{holder.name}":null}}}}')
    start = time.monotonic()
    moved_to = holders.wait_for_one(but=holder.name)
    stack.measured(
        f"no longer listed: another one has it after {time.monotonic() - start:.1f} s at most"
    )
    holder.run("systemctl restart keepalived || true")
    time.sleep(6)
    assert not holder.runs("keepalived"), "it asks before it begins"
    stack.kubectl(*LIST, f'{{"data":{{"{holder.name}":"1"}}}}')
    wait_for(
        "it runs as standby again",
        lambda: "" if holder.runs("keepalived") else "keepalived is off",
        limit_s=30,
    )
    time.sleep(5)
    assert holders.moves() == [*before, moved_to]
    away_ms(holders)


def test_one_that_does_not_hear_the_holder_never_begins(stack: Stack, holders: Holders) -> None:
    """It comes back from maintenance, and meanwhile something between the two lets no VRRP through."""
    before = holders.moves()
    resting = stack.node(holders.wait_for_one())
    stack.set_nodes({resting.name: {"state": "maintenance"}})
    stack.up()
    other = holders.wait_for_one(but=resting.name)
    assert not resting.runs("keepalived")
    resting.run("iptables -I INPUT -p 112 -j DROP")
    stack.set_nodes({})
    told = stack.up(fails=True).tail()
    assert "has it, and no advert of it (VRRP, protocol 112) comes here" in told
    assert not resting.runs("keepalived")
    resting.run("iptables -D INPUT -p 112 -j DROP")
    stack.up()
    assert resting.runs("keepalived")
    time.sleep(5)
    assert holders.moves() == [*before, other]
    away_ms(holders)


def test_the_holder_is_made_anew_and_two_never_had_it(stack: Stack, holders: Holders) -> None:
    before = holders.moves()
    holder = holders.wait_for_one()
    stack.set_nodes({holder: {"generation": 2}})
    with Load(stack, "recreated", outside=[DOOR]) as load:
        update = stack.start_up()
        while update.alive:
            holders.holds()  # the machine is deleted, and what it saw with it
            time.sleep(0.5)
        assert update.end() == 0, update.tail()
    assert_served_again(load)
    (other,) = set(EDGES) - {holder}
    time.sleep(3)
    assert holders.moves() == [*before, other]
    assert holders.wait_for_one() == other
    last, new = holders.holds()[-2:]
    away = new.start_ms - last.end_ms
    stack.measured(f"holder recreated: up {update.seconds:.0f} s, VIP away {away} ms")
    assert away < _HANDED_OVER_MS, "it gives the address up before its machine goes"
    away_ms(holders)


def test_a_second_up_changes_nothing(stack: Stack) -> None:
    assert_up_changes_nothing(stack)
