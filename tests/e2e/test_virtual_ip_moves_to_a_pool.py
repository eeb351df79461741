"""Story: the virtual IP of two masters moves to two load balancers in one edit, and back in another; two machines never have it."""

from __future__ import annotations

import itertools
import time

from tests.e2e.harness import config
from tests.e2e.harness.assertions import assert_up_changes_nothing
from tests.e2e.harness.holders import Holders
from tests.e2e.harness.load import Load
from tests.e2e.harness.stack import Stack
from tests.e2e.harness.update import Update

ALONE = "the address is away for at most 5 s"
ADDRESS = "10.93.64.5"
DOOR = f"{ADDRESS}:8443"
MASTERS = ("master-1", "master-2")
EDGES = ("edge-1", "edge-2")
POOL = {"roles": ["loadbalancer"], "count": 2}
# Who runs as standby takes it at the other one's last word, and if that one is a master that is about to stop too, the next does.
# A word that is lost on a busy computer costs 3.6 s.
AWAY_MS = 5000


def wanted() -> config.Config:
    out = config.lab("test-vip-pool", "10.93.64.0/24", masters=2, workers=1)
    out["frontDoors"] = {"vip": {"address": ADDRESS}}
    return out


def test_from_masters_to_a_pool(stack: Stack) -> None:
    stack.up()
    stack.edit("pools.edge", dict(POOL))
    with Holders([stack.node(name) for name in MASTERS], ADDRESS) as on_masters:
        assert on_masters.wait_for_one() in MASTERS
        with Load(stack, "to a pool", outside=[DOOR]) as load:
            update = stack.start_up()
            watching = _watch_as_they_come(stack, on_masters, update)
        assert update.end() == 0, update.tail()
        assert watching.wait_for_one() in EDGES
        _assert_one_at_a_time(stack, "to a pool", [on_masters, watching])
    _assert_clients_go_on(load)
    for name in MASTERS:
        assert not stack.node(name).runs("keepalived")
    assert_up_changes_nothing(stack)


def test_and_back(stack: Stack) -> None:
    stack.edit("pools.edge", None)
    with (
        Holders([stack.node(name) for name in EDGES], ADDRESS) as on_edges,
        Holders([stack.node(name) for name in MASTERS], ADDRESS) as on_masters,
    ):
        with Load(stack, "back to masters", outside=[DOOR]) as load:
            update = stack.start_up()
            while update.alive:
                on_edges.holds()  # machines that leave are deleted, and what they saw with them
                time.sleep(0.5)
        assert update.end() == 0, update.tail()
        assert on_masters.wait_for_one() in MASTERS
        _assert_one_at_a_time(stack, "back to masters", [on_edges, on_masters])
    _assert_clients_go_on(load)
    assert_up_changes_nothing(stack)


def _watch_as_they_come(stack: Stack, on_masters: Holders, update: Update) -> Holders:
    """Edges are watched from the moment that they can be entered, long before one has the address."""
    edges = Holders([stack.node(name) for name in EDGES], ADDRESS)
    left = set(EDGES)
    while update.alive:
        for name in sorted(left):
            if stack.node(name).asked("systemctl is-active haproxy").strip() == "active":
                edges.watch(stack.node(name))
                left.discard(name)
        on_masters.holds()
        time.sleep(0.5)
    assert not left, f"{sorted(left)} never came"
    return edges


def _assert_one_at_a_time(stack: Stack, what: str, parts: list[Holders]) -> None:
    """Across both groups: the clocks are those of one computer."""
    found = sorted(
        (hold for part in parts for hold in part.holds()), key=lambda hold: hold.start_ms
    )
    gaps = [later.start_ms - earlier.end_ms for earlier, later in itertools.pairwise(found)]
    stack.measured(f"VIP {what}: {[hold.node for hold in found]}, between them {gaps} ms")
    assert len(found) >= 2, found
    assert min(gaps) >= 0, f"two had it: {found}"
    assert max(gaps) < AWAY_MS, found


def _assert_clients_go_on(load: Load) -> None:
    """By the address itself it is unavailable for seconds; nothing acknowledged is lost. Whoever goes by a node's HAProxy sees nothing."""
    seen = load.seen()
    outside = seen["API from outside"]
    assert (outside.lost, outside.stale) == (0, 0), outside
    assert outside.longest_gap_ms < AWAY_MS + 5000, outside
    inside = seen["API by a worker's HAProxy"]
    assert (inside.lost, inside.stale, inside.failed_twice) == (0, 0, 0), inside
