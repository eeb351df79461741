"""The program registers what it did: URNs, inputs, what waits for what, and every other option.

A stack is its URNs and inputs: where one changes without being meant to, an `up` runs phases again on clusters that live,
or recreates something. Where it is meant, `python -m tests.plan.state_lock` writes the lock again, and the commit says
what the next `up` of a cluster will do. `python -m tests.plan.state_lock FOLDER` writes every registration as text: made
by two commits, a diff of both folders shows what the digests only name.
"""

from __future__ import annotations

import json

from tests.plan import state_lock


def test_every_resource_is_registered_as_it_was() -> None:
    was = state_lock.unpacked(json.loads(state_lock.FILE.read_text()))
    now = state_lock.record()
    assert list(now) == list(was)
    found = [f"{up}\n    {line}" for up in now for line in state_lock.differences(was[up], now[up])]
    rest = [f"and {len(found) - 40} more"] if len(found) > 40 else []
    assert not found, "\n  ".join(["registered otherwise:", *found[:40], *rest])


def test_what_is_stored_is_what_was_recorded() -> None:
    ups = {
        "lab": {"dev-gate Command": "urn=aa input.stdin=bb", "dev-old Stash": "urn=cc"},
        "lab: again": {"dev-gate Command": "urn=aa input.stdin=dd", "dev-new Stash": "urn=cc"},
        "lab: flag": {"dev-new Stash": "urn=cc"},
    }
    assert state_lock.unpacked(state_lock.packed(ups)) == ups


def test_a_change_is_told_by_the_resource_and_what_of_it_differs() -> None:
    was = {"dev-gate Command": "urn=aa input.stdin=bb", "dev-old Stash": "urn=cc"}
    now = {"dev-gate Command": "urn=aa input.stdin=dd deletedWith=ee", "dev-new Stash": "urn=cc"}
    assert state_lock.differences(was, now) == [
        "dev-gate Command: deletedWith, input.stdin",
        "is registered and was not: dev-new Stash",
        "is not registered any more: dev-old Stash",
    ]
