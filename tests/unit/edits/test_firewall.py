"""An edit of the firewall: whoever comes or goes meanwhile is let in by machines with the old rules and the new."""

from __future__ import annotations

import json

import pytest

from stacks.edits import memory
from stacks.edits.transition import TransitionError, check, remembered
from tests.unit.configs import adopted, edited, host, planned

PATH = "machines.firewall"
NARROW = {"networks": ["192.0.2.0/28", "192.0.2.96/29"], "sshFrom": ["0.0.0.0/0"], "apiFrom": []}
WIDE = {**NARROW, "networks": ["192.0.2.0/24"]}
FAR = {"pools.worker.hosts": [host("worker", number) for number in (1, 2, 50)]}  # 192.0.2.150


def refused(before: dict[str, object], after: dict[str, object]) -> dict[str, str]:
    previous = json.loads(json.dumps(memory.of(planned(before))))
    try:
        check(remembered(previous), planned(after))
    except TransitionError as error:
        return dict(error.problems)
    return {}


@pytest.mark.parametrize(
    ("before", "after", "word"),
    [
        ({}, {PATH: NARROW}, ""),
        ({PATH: NARROW}, {}, ""),
        ({PATH: NARROW}, {PATH: WIDE}, ""),
        ({PATH: WIDE}, {PATH: WIDE, **FAR}, ""),
        ({PATH: WIDE, **FAR}, {PATH: WIDE}, ""),
        ({PATH: NARROW}, {PATH: WIDE, **FAR}, "of before has no network with the address of worker-50"),
        ({PATH: NARROW}, FAR, "of before has no network with the address of worker-50"),
        ({PATH: WIDE, **FAR}, {PATH: NARROW}, "would keep it out before it has left"),
        (FAR, {PATH: NARROW}, "would keep it out before it has left"),
    ],
)  # fmt: skip
def test_networks_change_before_machines_come_and_after_they_have_left(
    before: dict[str, object], after: dict[str, object], word: str
) -> None:
    found = refused(adopted(before), adopted(after))
    assert [*found] == ([f"{PATH}.networks"] if word else [])
    assert word in found.get(f"{PATH}.networks", "")


def test_a_dead_machine_is_let_in_by_nobody() -> None:
    far = adopted({PATH: WIDE, **FAR})
    lost = {PATH: NARROW, "nodes": {"worker-50": {"state": "lost"}}}
    assert refused(far, edited(far, lost)) == {}
