"""What gates between waves are told, and what makes them run."""

from __future__ import annotations

from stacks.phases import wave
from tests.unit.configs import lab, planned

PLAN = planned(lab({"pools.worker.count": 3}))
HASHES = {f"worker-{number}": "aa" for number in (1, 2, 3)}


def test_a_gate_opens_the_wave_behind_it_and_asks_about_the_one_before() -> None:
    gates = wave.gates(PLAN, set(HASHES))
    assert [gate.opens for gate in gates] == [("worker-1",), ("worker-2",), ("worker-3",)]
    assert gates[1].lists == {"NODES": ("worker-1",), "LATER": ("worker-2", "worker-3")}
    assert gates[2].lists["EARLIER"] == ("worker-1",)
    assert gates[1].settings["WAVES"] == "3"


def test_who_is_new_is_in_no_wave_yet() -> None:
    gates = wave.gates(PLAN, ())
    assert [(gate.lists, gate.settings) for gate in gates] == [({}, {})] * 3


def test_a_gate_runs_for_what_its_nodes_should_be_and_not_for_who_they_are() -> None:
    gate = wave.gates(PLAN, set(HASHES))[0]
    same, other = {**HASHES, "worker-9": "bb"}, {**HASHES, "worker-3": "bb"}
    assert wave.trigger(PLAN, gate, HASHES) == wave.trigger(PLAN, gate, same)
    assert wave.trigger(PLAN, gate, HASHES) != wave.trigger(PLAN, gate, other)
