"""Story: one master has a virtual IP from the first day, becomes three, and is one again; clients know nothing but that address."""

from __future__ import annotations

import time

from tests.e2e.harness import config
from tests.e2e.harness.assertions import assert_up_changes_nothing
from tests.e2e.harness.holders import Holders
from tests.e2e.harness.probe import Probe
from tests.e2e.harness.stack import Stack

ALONE = "two holders at once for at most 2 s"
ADDRESS = "10.93.65.5"
DOOR = f"{ADDRESS}:8443"
# What a client waits for a dead machine to be replaced by the next holder, on a busy computer.
SERVES_AGAIN_MS = 10_000
# Who leaves asks the cluster every 2 s, and would take the address 3 s after the last advert.
AT_ONCE_MS = 2000


def wanted() -> config.Config:
    out = config.lab("test-vip-grows", "10.93.65.0/24", masters=1, workers=1)
    out["frontDoors"] = {"vip": {"address": ADDRESS}, "verify": "here"}
    out["cluster"]["endpoint"] = DOOR
    return out


def test_one_master_has_it(stack: Stack) -> None:
    stack.up()
    assert stack.output("endpoint") == f"https://{DOOR}"
    assert stack.ready() == {"master-1": True, "worker-1": True}
    with Holders([stack.node("master-1")], ADDRESS) as holders:
        assert holders.now() == ["master-1"]


def test_two_more_masters_join_and_it_stays(stack: Stack) -> None:
    stack.edit("pools.master.count", 3)
    first = stack.node("master-1")
    with (
        Holders([first], ADDRESS) as holders,
        Probe(stack.node("worker-1"), stack.evidence / "grow.txt", door=DOOR) as probe,
    ):
        stack.up()
        assert holders.moves() == ["master-1"], "a list of peers that grows moves nothing"
    told = stack.output("loadBalancer")
    assert isinstance(told, dict)
    assert [one["name"] for one in told["backends"]] == ["master-1", "master-2", "master-3"]
    for kind in ("read", "write"):
        seen = probe.seen(kind)
        stack.served("1 to 3 masters", f"{kind}s by the VIP", seen)
        assert seen.failed_twice == 0, seen
    # With the kubeconfig of the first day.
    assert set(stack.ready()) == {"master-1", "master-2", "master-3", "worker-1"}


def test_a_master_that_is_taken_out_gives_it_up(stack: Stack) -> None:
    """The worst of edits: the holder and one that stood by leave together."""
    leaving = [stack.node("master-2"), stack.node("master-3")]
    nodes = [stack.node("master-1"), *leaving]
    with Holders(nodes, ADDRESS) as holders:
        stack.node("master-1").run("systemctl stop haproxy")
        holder = holders.wait_for_one(but="master-1")
        stack.node("master-1").run("systemctl start haproxy")
        stack.edit("pools.master.count", 1)
        with Probe(stack.node("worker-1"), stack.evidence / "shrink.txt", door=DOOR) as probe:
            update = stack.start_up()
            while update.alive:
                holders.holds()  # machines that leave are deleted, and what they saw with them
                time.sleep(1)
            assert update.end() == 0, update.tail()
        assert holders.now() == ["master-1"]
        gap, overlap = holders.longest_gap_ms(), holders.longest_overlap_ms()
    stack.measured(
        f"3 to 1 masters, {holder} had the VIP: nobody had it for {gap} ms, two for {overlap} ms"
    )
    assert overlap < AT_ONCE_MS
    for kind in ("read", "write"):
        seen = probe.seen(kind)
        stack.served("3 to 1 masters", f"{kind}s by the VIP", seen)
        assert seen.longest_gap_ms < SERVES_AGAIN_MS, seen
    assert stack.ready() == {"master-1": True, "worker-1": True}


def test_second_up_changes_nothing(stack: Stack) -> None:
    assert_up_changes_nothing(stack)
