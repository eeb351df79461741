"""Commands of an update as their scripts see them: phase, machine, and the values before and after."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from tests.plan.providers import COMMAND
from tests.plan.registration import Change, Resource, Run

Values = Mapping[str, str]
_PHASE = re.compile(r"run\.sh ([a-z-]+)")
_COUNTED = re.compile(r"^(.*)\[(\d+)-(\d+)(?:/(\d+))?\]$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One phase on one machine; None: it is not there before, or not there after."""

    name: str  # of the resource
    phase: str
    node: str
    before: Values | None
    after: Values | None
    runs: bool  # whether the engine runs its script with the values after

    @property
    def is_again(self) -> bool:
        """It runs on the machine on which it ran before."""
        return self.runs and self.before is not None and not self.is_recreated

    @property
    def is_recreated(self) -> bool:
        """Another machine has taken the name."""
        return None not in (self.before, self.after) and "INCARNATION" in self.changed

    @property
    def changed(self) -> frozenset[str]:
        """Names of values that differ."""
        was, now = self.before or {}, self.after or {}
        return frozenset(name for name in {*was, *now} if was.get(name) != now.get(name))

    def was(self, name: str) -> str:
        return (self.before or {}).get(name, "")

    def now(self, name: str) -> str:
        return (self.after or {}).get(name, "")


def commands(run: Run) -> tuple[Command, ...]:
    """Those of both runs, in the order in which they were registered; those that are gone come last."""
    changes = {change.name: change for change in run.changes}
    found = [
        command
        for resource in run.commands
        for command in _commands(changes.get(resource.name), resource)
    ]
    gone = (change for change in run.changes if change.mark == "-")
    return (*found, *(one for change in gone for one in _commands(change, None)))


def _commands(change: Change | None, after: Resource | None) -> Iterator[Command]:
    """One, or two where a resource takes the place of that of another phase."""
    before = change.before if change else after
    was, now = (_phase(one) for one in (before, after))
    resource_name = "".join({one.name for one in (before, after) if one})
    for phase in dict.fromkeys(filter(None, (now, was))):
        values = [
            _values(one) if one and name == phase else None
            for one, name in ((before, was), (after, now))
        ]
        yield Command(
            name=resource_name,
            phase=phase,
            node=(values[1] or values[0] or {}).get("NODE", ""),
            before=values[0],
            after=values[1],
            runs=change is not None and change.mark != "-" and phase == now,
        )


def _phase(resource: Resource | None) -> str:
    found = (
        _PHASE.search(resource.text("create")) if resource and resource.type == COMMAND else None
    )
    return found[1] if found else ""


def _values(resource: Resource) -> Values:
    words = shlex.split(resource.text("stdin"), comments=True)
    return dict(word.split("=", 1) for word in words)


def files(values: Values | None) -> dict[str, str]:
    """Of phase pki: the text of each file by its path."""
    known = values or {}
    numbers = range(1, int(known.get("PKI_COUNT", "0")) + 1)
    return {known[f"PKI_PATH_{n}"]: known[f"PKI_TEXT_{n}"] for n in numbers}


def downloads(values: Values | None) -> dict[str, tuple[str, str]]:
    """Of ARTEFACTS: address and sum by name."""
    lines = ((values or {}).get("ARTEFACTS") or "").splitlines()
    return {name: (url, known) for name, url, known in map(str.split, lines)}


def expand(names: str) -> Iterator[str]:
    """`a-[1-3],b`: as nodes.sh reads it."""
    for word in filter(None, names.split(",")):
        found = _COUNTED.match(word)
        if not found:
            yield word
            continue
        numbers = range(int(found[2]), int(found[3]) + 1, int(found[4] or 1))
        yield from (f"{found[1]}{number}" for number in numbers)


def by_name(lines: str) -> dict[str, tuple[str, ...]]:
    """Lines `names<TAB>words`: the words of each name."""
    rows = (line.partition("\t") for line in lines.splitlines())
    return {name: tuple(words.split()) for names, _, words in rows for name in expand(names)}


def members(words: str) -> list[str]:
    """Names of words `name=address`."""
    return [word.partition("=")[0] for word in words.split()]


def wanted(values: Values | None) -> set[str]:
    """Of phase nodes: who is a Node."""
    known = values or {}
    rows: Iterable[list[str]] = (line.split() for line in known.get("WANTED", "").splitlines())
    there = {name for row in rows for name in expand(row[2])}
    return there | {*expand(known.get("ABSENT", ""))}
