"""What every story of the virtual IP asks of it, whoever has it."""

from __future__ import annotations

import time

from tests.e2e.harness.holders import Holders
from tests.e2e.harness.load import Load
from tests.e2e.harness.stack import Stack

_RELOADS = 10
_MOVES_WITHIN_MS = 5000
# A client that dials a dead machine tries again after 1, 2 and 4 s: the third time it may be the next holder.
_SERVES_AGAIN_MS = 10_000


def assert_reloads_lose_nothing(stack: Stack, holders: Holders, door: str) -> None:
    """HAProxy of the holder reloads ten times under load, and the address stays."""
    holder = stack.node(holders.wait_for_one())
    with Load(stack, "ten reloads", outside=[door]) as load:
        for _ in range(_RELOADS):
            holder.run("systemctl reload haproxy")
            time.sleep(0.5)  # the clients ask several times between two of them
    load.assert_unharmed()
    seen = load.seen()["API from outside"]
    assert seen.failed == 0, seen
    assert holders.moves()[-1] == holder.name


def assert_served_again(load: Load) -> None:
    """By the door, which refused everybody while it was unavailable, and was back in time. Nowhere else was anything refused twice."""
    for place, seen in load.seen().items():
        assert (seen.lost, seen.stale) == (0, 0), f"{place}: {seen}"
        assert seen.longest_gap_ms <= _SERVES_AGAIN_MS, f"{place}: {seen}"
        if place != "API from outside":
            assert seen.failed_twice == 0, f"{place}: {seen}"
    load.assert_etcd_safe()


def away_ms(holders: Holders) -> int:
    """The longest that nobody had it, which is within limits. Two never had it."""
    assert holders.longest_overlap_ms() == 0, holders.holds()
    away = holders.longest_gap_ms()
    assert away < _MOVES_WITHIN_MS, holders.holds()
    return away
