"""Story: the holder of a virtual IP dies, by its HAProxy and as a machine: another one has the address at once, and keeps it."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.e2e.harness import config
from tests.e2e.harness.doors import assert_served_again, away_ms
from tests.e2e.harness.holders import Holders
from tests.e2e.harness.load import Load
from tests.e2e.harness.stack import Stack
from tests.e2e.harness.waiting import wait_for

ADDRESS = "10.93.62.5"
DOOR = f"{ADDRESS}:8443"
MASTERS = ("master-1", "master-2", "master-3")
NODES = {*MASTERS, "worker-1"}


def wanted() -> config.Config:
    out = config.lab("test-vip-moves", "10.93.62.0/24", masters=3, workers=1)
    out["frontDoors"] = {"vip": {"address": ADDRESS}}
    return out


@pytest.fixture(scope="module")
def holders(stack: Stack) -> Iterator[Holders]:
    stack.up()
    with Holders([stack.node(name) for name in MASTERS], ADDRESS) as holders:
        yield holders


def test_haproxy_that_dies_on_the_holder(stack: Stack, holders: Holders) -> None:
    holder = stack.node(holders.wait_for_one())
    with Load(stack, "proxy dies", outside=[DOOR]) as load:
        holder.run("systemctl kill -s KILL haproxy")  # systemd starts it again
        wait_for(
            "HAProxy again",
            lambda: "" if holder.asked("systemctl is-active haproxy").strip() == "active" else "no",
            limit_s=30,
        )
        time.sleep(3)
        holder = stack.node(holders.wait_for_one())
        before = holders.moves()
        holder.run("systemctl stop haproxy")  # and this time it stays away
        moved_to = holders.wait_for_one(but=holder.name)
        holder.run("systemctl start haproxy")
        time.sleep(8)
        assert holders.moves() == [*before, moved_to]
    stack.measured(f"HAProxy of the holder stopped: VIP away for {away_ms(holders)} ms")
    assert_served_again(load)


def test_machine_that_dies_while_it_holds_it(stack: Stack, holders: Holders) -> None:
    before = holders.moves()
    holder = stack.node(holders.wait_for_one())
    with Load(stack, "holder dies", outside=[DOOR]) as load:
        holder.kill()
        moved_to = holders.wait_for_one(but=holder.name)
        time.sleep(3)
    assert_served_again(load)
    holder.start()
    holders.watch(holder)
    stack.wait_healthy(NODES)
    time.sleep(5)
    assert holders.moves() == [*before, moved_to], "it must not move again when the machine returns"
    # What the dead one saw last is on its disk.
    stack.measured(f"machine of the holder killed: VIP away for at most {away_ms(holders)} ms")
