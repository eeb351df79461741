"""The firewall of machines is not taken away while others come."""

from __future__ import annotations

import pytest

from stacks import load
from stacks.config.problems import SpecError
from stacks.edits import memory, transition
from stacks.edits.memory import Memory
from tests.unit.configs import adopted, host, lab, planned

ON: dict[str, object] = {"machines.firewall": {}}


def remembered(config: dict[str, object]) -> Memory:
    return memory.read(memory.of(planned(config)))


def test_it_is_taken_out_in_an_update_of_its_own() -> None:
    before = remembered(lab(ON))
    with pytest.raises(transition.TransitionError) as caught:
        transition.check(before, planned(lab({"pools.worker.count": 4})))
    [(path, text)] = caught.value.problems
    assert path == "machines.firewall"
    assert "worker-3, worker-4 would join" in text


def test_it_ends_begins_and_stays_otherwise() -> None:
    more = {"pools.worker.count": 4}
    for was, now in (
        (ON, {}),
        ({}, {**ON, **more}),
        (ON, {**ON, **more}),
        (ON, {"pools.worker.count": 1}),
    ):
        transition.check(remembered(lab(was)), planned(lab(now)))


def test_more_addresses_than_a_command_takes_are_refused() -> None:
    hosts = [
        {**host("worker", n), "name": f"worker-{n}", "address": f"172.{16 + n // 120}.{n % 120}.7"}
        for n in range(1, 500)
    ]
    wide = {"cluster.podCidr": "10.0.0.0/12", "pools.worker.hosts": hosts}
    with pytest.raises(SpecError) as caught:
        load.load(adopted({**ON, **wide}))
    assert "give machines addresses that count" in dict(caught.value.problems)["machines.firewall"]
