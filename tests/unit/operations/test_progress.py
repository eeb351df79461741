"""What is told of a long update: one line a step, in the words of the order, and what is waited for."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

import pytest

from operations.engine import progress
from operations.engine.progress import Progress
from stacks.edits import memory
from stacks.edits.memory import Memory
from stacks.order.difference import PARTS
from tests.unit.configs import lab, planned


@dataclass
class Clock:
    now: float = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Told:
    """A progress, and its lines without their time."""

    progress: Progress
    clock: Clock
    lines: list[str] = field(default_factory=list)

    def event(self, kind: str, name: str, operation: str = "create") -> None:
        metadata = {"urn": f"urn:pulumi:dev::kube-ha::x::{name}", "op": operation}
        self.take([json.dumps({"timestamp": 1, kind: {"metadata": metadata}})])

    def does(self, name: str, operation: str = "create", *, for_s: float = 1) -> None:
        self.event("resourcePreEvent", name, operation)
        self.clock.now += for_s
        self.event("resOutputsEvent", name, operation)

    def take(self, events: Iterable[str]) -> None:
        self.keep(self.progress.lines(events))

    def wait(self) -> None:
        self.keep(self.progress.waiting())

    def keep(self, lines: Iterable[str]) -> None:
        for line in lines:
            assert re.match(r"\d\d:\d\d:\d\d  ", line)
            self.lines.append(" ".join(line.split()[1:]))


def before(edits: dict[str, object] | None = None) -> Memory:
    return memory.read(json.loads(json.dumps(memory.of(planned(lab(edits))))))


def told(edits: dict[str, object], *, was: Memory | None = None) -> Told:
    clock = Clock()
    return Told(Progress(progress.steps(was, planned(lab(edits))), clock), clock)


def test_a_step_is_told_once_all_its_resources_have_ended() -> None:
    seen = told({"pools.worker.count": 3}, was=before())
    seen.does("dev-worker-3-preflight", for_s=7)
    assert seen.lines == []
    seen.does("dev-worker-3-node", for_s=34)
    assert len(seen.lines) == 1
    assert re.fullmatch(r"worker-3 new machines done after 41 s, 1 of \d+ steps", seen.lines[0])


@pytest.mark.parametrize(
    ("edits", "was"),
    [
        ({}, None),
        ({"pools.worker.count": 3}, before()),
        ({"pools.worker.count": 1}, before()),
        ({"cluster.kubernetes": "1.36.3"}, before({"cluster.kubernetes": "1.36.1"})),
    ],
    ids=["create", "grow", "shrink", "upgrade"],
)
def test_an_update_as_planned_ends_with_all_steps_done(
    edits: dict[str, object], was: Memory | None
) -> None:
    seen = told(edits, was=was)
    for step in progress.steps(was, planned(lab(edits))).expected:
        seen.does(step.name)
    last = seen.lines[-1].split(", ")[-1]
    assert re.fullmatch(r"(\d+) of \1 steps", last)
    assert last == f"{len(seen.lines)} of {len(seen.lines)} steps"
    assert all(any(f" {part} done" in line for part in PARTS) for line in seen.lines)


def test_what_an_earlier_try_has_done_counts_and_is_not_told() -> None:
    seen = told({"pools.worker.count": 3}, was=before())
    for name in ("dev-worker-3-preflight", "dev-worker-3-node"):
        seen.does(name, "same")
    seen.does("dev-worker-3-join")
    (line,) = seen.lines
    assert "worker-3 joining done after 1 s, 2 of " in line


def test_what_an_earlier_try_has_left_is_told_though_the_config_asks_for_nothing() -> None:
    seen = told({}, was=before())
    seen.does("dev-master-2-master", "update")
    assert seen.lines == ["master-2 control plane done after 1 s, 1 of 1 steps"]


def test_a_failure_is_told_at_once_with_its_phase_and_its_step_is_not_done() -> None:
    seen = told({}, was=None)
    seen.event("resourcePreEvent", "dev-master-2-etcd")
    seen.clock.now += 61
    seen.event("resOpFailedEvent", "dev-master-2-etcd")
    assert seen.lines == ["master-2 members FAILED: etcd-member after 61 s"]


def test_a_long_step_is_told_of_again_with_what_runs() -> None:
    seen = told({}, was=None)
    seen.event("resourcePreEvent", "dev-master-2-etcd")
    seen.wait()
    assert seen.lines == []
    seen.clock.now += 31
    seen.wait()
    seen.wait()
    assert seen.lines == ["master-2 members etcd-member runs for 31 s"]
    seen.event("resourcePreEvent", "dev-worker-1-node")
    seen.clock.now += 31
    seen.wait()
    assert seen.lines[1:] == ["master-2 members etcd-member runs for 62 s, and 1 more"]


def test_where_nothing_runs_nothing_is_told() -> None:
    seen = told({}, was=None)
    seen.clock.now += 3600
    seen.wait()
    assert seen.lines == []


@pytest.mark.parametrize(
    "text",
    [
        '{"resourcePreEvent": {"metadata": {"urn": "urn:',
        '{"resourcePreEvent": null}',
        '["resourcePreEvent"]',
        '"resOutputsEvent"',
        '{"diagnosticEvent": {"message": "\\"resourcePreEvent\\""}}',
        "",
    ],
)
def test_a_line_that_is_no_event_of_a_resource_is_passed_over(text: str) -> None:
    seen = told({}, was=None)
    seen.take([text])
    assert seen.lines == []


@pytest.mark.parametrize("operation", ["replace", "delete-replaced", "read"])
def test_what_goes_beside_a_replacement_ends_no_step(operation: str) -> None:
    seen = told({}, was=None)
    seen.does("dev-gate", operation)
    assert seen.lines == []
    seen.does("dev-gate", "create-replacement")
    assert len(seen.lines) == 1
