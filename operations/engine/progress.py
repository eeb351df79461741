"""A long `up` as one line a step: `12:00:41  master-2  control plane  done after 41 s, 7 of 23`.

A step is a part of the order on one machine; its name and the phases in it are those of
stacks/order. What happens is read from the engine's own log of events.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from stacks.cluster.plan import Plan
from stacks.edits.memory import Memory
from stacks.order import difference
from stacks.order.difference import Difference
from stacks.order.step import Step

_QUIET_S = 30.0  # after which a step that runs is told of again
# What the engine does by the way of a replacement, or only looks at.
_BESIDE = frozenset(
    {"read", "refresh", "replace", "delete-replaced", "discard", "discard-replaced"}
)


@dataclass(slots=True)
class Group:
    """Resources of one part of the order on one machine."""

    where: str
    part: str
    left: set[str] = field(default_factory=set)  # resources that have not ended
    runs: dict[str, float] = field(default_factory=dict)  # since when, by resource
    since_s: float | None = None
    is_told: bool = False


@dataclass(frozen=True, slots=True)
class Steps:
    """What an update is expected to run, and whose step each resource is."""

    expected: tuple[Step, ...] = ()
    known: Mapping[str, Step] = field(default_factory=dict)  # by name of the resource


def steps(before: Memory | None, plan: Plan) -> Steps:
    """Of an edit; nothing is expected where that cannot be said: the program will tell why."""
    try:
        edit = difference.edit(before, plan)
    except (ValueError, LookupError):
        return Steps()
    expected = tuple(one.step for one in edit.differences if _is_told(one))
    # What an earlier try has left runs beside it. A cluster that is made has all it needs in its
    # plan: what is there for later updates does nothing yet.
    rest = [Difference(step=step, mark="~") for step in edit.steps if before is not None]
    known = (*(one.step for one in rest if _is_told(one)), *expected)
    return Steps(expected, {step.name: step for step in known})


def _is_told(one: Difference) -> bool:
    """Only what does something on a machine. Providers make machines, under names of theirs."""
    return one.happens and one.step.kind != "machine"


class Progress:
    """Reads events, gives lines. `clock`: seconds of the epoch, which lines show as local time."""

    def __init__(self, wanted: Steps, clock: Callable[[], float] = time.time) -> None:
        self._known, self._clock = wanted.known, clock
        self._groups: dict[tuple[str, str], Group] = {}
        self._told_s = clock()
        for step in wanted.expected:
            self._group(step).left.add(step.name)
        every = self._groups.values()
        self._widths = [
            max((len(text) for text in texts), default=0)
            for texts in ([group.where for group in every], [group.part for group in every])
        ]

    def lines(self, events: Iterable[str]) -> Iterator[str]:
        """What is to be told of these lines of the log. Other lines are passed over."""
        for text in events:
            # Most lines are diagnostics for debugging; parsing them all takes seconds.
            if (
                '"resourcePreEvent"' in text
                or '"resOutputsEvent"' in text
                or '"resOpFailed' in text
            ):
                yield from self._of(text)

    def waiting(self) -> Iterator[str]:
        """What runs for longest, where nothing was told of for a while."""
        now = self._clock()
        if now - self._told_s < _QUIET_S:
            return
        running = [
            (since, name, group)
            for group in self._groups.values()
            for name, since in group.runs.items()
        ]
        if running:
            since, name, group = min(running, key=lambda one: one[0])
            more = f", and {len(running) - 1} more" if len(running) > 1 else ""
            yield self._line(group, f"{self._what(name)} runs for {now - since:.0f} s{more}")

    def _of(self, text: str) -> Iterator[str]:
        try:
            event = json.loads(text)
            kind = next(key for key in event if key.startswith("res"))
            metadata = event[kind]["metadata"]
            name, operation = str(metadata["urn"]).rpartition("::")[2], str(metadata["op"])
        except (ValueError, LookupError, TypeError, StopIteration):
            return
        step = self._known.get(name)
        if step is None or operation in _BESIDE:
            return
        group = self._groups.get(_key(step))
        if group is None or name not in group.left:
            if operation == "same" or kind != "resourcePreEvent":
                return
            group = self._group(step)  # what an earlier update left undone
            group.left.add(name)
            group.is_told = False
        yield from self._moved(group, kind, name, operation)

    def _moved(self, group: Group, kind: str, name: str, operation: str) -> Iterator[str]:
        now = self._clock()
        if kind == "resourcePreEvent":
            if operation != "same":
                group.runs[name] = now
                group.since_s = now if group.since_s is None else group.since_s
            return
        group.runs.pop(name, None)
        if kind == "resOpFailedEvent":
            yield self._line(group, f"FAILED: {self._what(name)} {self._after(group)}")
            return
        group.left.discard(name)
        if not group.left and not group.is_told:
            group.is_told = True
            if group.since_s is not None:
                yield self._line(group, f"done {self._after(group)}, {self._count()}")

    def _group(self, step: Step) -> Group:
        where, part = key = _key(step)
        return self._groups.setdefault(key, Group(where, part))

    def _count(self) -> str:
        done = sum(1 for group in self._groups.values() if group.is_told)
        return f"{done} of {len(self._groups)} steps"

    def _after(self, group: Group) -> str:
        return f"after {self._clock() - (group.since_s or self._clock()):.0f} s"

    def _what(self, name: str) -> str:
        return self._known[name].phase or name

    def _line(self, group: Group, text: str) -> str:
        self._told_s = self._clock()
        at = time.strftime("%H:%M:%S", time.localtime(self._told_s))
        where, part = self._widths
        return f"{at}  {group.where.ljust(where)}  {group.part.ljust(part)}  {text}"


def _key(step: Step) -> tuple[str, str]:
    return (step.node.name if step.node else "cluster", step.part or step.kind)
