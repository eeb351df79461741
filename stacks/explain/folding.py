"""Waves as rows for people: equal neighbours are one row, nodes of equal actions one group."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from stacks.cluster.names import spoken
from stacks.explain.actions import Kind, NodeChange, Wave

SIGNS: Mapping[Kind, str] = {"new": "+", "changed": "~", "rebuilt": "±", "leaving": "-"}
_ORDERS = {"in parallel": "in parallel", "one by one": "one at a time"}
_NUMBER = re.compile(r"\bwave ([0-9]+) of\b")
_NAMES_MOST = 60  # letters


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Nodes to which the same happens."""

    sign: str
    names: tuple[str, ...]
    texts: tuple[str, ...]

    @property
    def nodes(self) -> str:
        """`± worker-1 to worker-50`; of very many ranges the first ones, and how many in all."""
        text = spoken(self.names)
        if len(text) > _NAMES_MOST:
            kept = text[:_NAMES_MOST].rpartition(", ")[0]
            text = f"{kept} and others, {len(self.names)} in all"
        return f"{self.sign} {text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    title: str
    order: str  # empty where there is nothing to put in order
    groups: tuple[Group, ...]
    lines: tuple[str, ...]
    checked: tuple[str, ...]  # of folded waves each that differs
    abort: str


def rows(waves: Sequence[Wave]) -> tuple[Row, ...]:
    """The waves in their order, first to last."""
    runs: list[list[Wave]] = []
    for wave in waves:
        if runs and _follows(runs[-1][-1], wave):
            runs[-1].append(wave)
        else:
            runs.append([wave])
    return tuple(_row(run) for run in runs)


def _row(run: Sequence[Wave]) -> Row:
    first = run[0]
    nodes = [node for wave in run for node in wave.nodes]
    order = _ORDERS.get(first.order, "") if len(first.nodes) > 1 else ""
    return Row(
        title=_title(run),
        order=order,
        groups=groups(nodes),
        lines=first.lines,
        checked=tuple(_checked(run)),
        abort=first.abort,
    )


def _checked(run: Sequence[Wave]) -> Iterator[str]:
    last = ""
    for wave in run:
        if wave.checked != last:
            [number, *_] = _NUMBER.findall(wave.title) or [""]
            yield f"from wave {number} on, {wave.checked}" if last else wave.checked
        last = wave.checked


def _title(run: Sequence[Wave]) -> str:
    if len(run) == 1:
        return run[0].title
    numbers = [_NUMBER.findall(wave.title) for wave in (run[0], run[-1])]
    pairs = iter(zip(*numbers, strict=True))

    def counted(_: re.Match[str]) -> str:
        return "waves {} to {} of".format(*next(pairs))

    sizes = {len(wave.nodes) for wave in run}
    each = f"{max(sizes)} nodes" if len(sizes) == 1 else f"up to {max(sizes)} nodes"
    if sizes == {1}:
        each = "1 node"
    return f"{_NUMBER.sub(counted, run[0].title)}, {each} each"


def _follows(last: Wave, wave: Wave) -> bool:
    """Whether it is the next one by its number, and the same happens in it."""
    numbers = [[int(number) for number in _NUMBER.findall(one.title)] for one in (last, wave)]
    return (
        bool(numbers[0])
        and [number + 1 for number in numbers[0]] == numbers[1]
        and _what(last) == _what(wave)
    )


def _what(wave: Wave) -> object:
    """What waves have in common that are one row."""
    done = frozenset((node.kind, _texts(node)) for node in wave.nodes)
    return (_NUMBER.sub("wave # of", wave.title), wave.order, wave.lines, done)


def groups(nodes: Iterable[NodeChange]) -> tuple[Group, ...]:
    """Nodes with the same actions together, in the order of the first of them."""
    found: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for node in nodes:
        found.setdefault((SIGNS[node.kind], _texts(node)), []).append(node.name)
    return tuple(
        Group(sign=sign, names=tuple(names), texts=texts) for (sign, texts), names in found.items()
    )


def _texts(node: NodeChange) -> tuple[str, ...]:
    """What several phases of a node have in common is told once."""
    return tuple(dict.fromkeys(action.text for action in node.actions))


_LONG = 64  # letters of a text that is cut short
_THEN_MOST = 48


def short(text: str) -> str:
    """An action in a few words: `haproxy.cfg (HAProxy reloads, open connections stay)`."""
    what, found, then = text.partition(": ")
    if found:
        return f"{what} ({then})" if len(then) <= _THEN_MOST else what
    return text if len(text) <= _LONG else text.partition(" (")[0]


def gathered(lines: Iterable[str], names: Iterable[str]) -> list[str]:
    """Lines that tell the same of several add-ons as one: `coredns, flannel: is made`."""
    known = {*names}
    found: dict[tuple[str, str], list[str]] = {}
    for line in lines:
        subject, _, what = line.partition(" ")
        of = ("", what) if subject in known else (line, "")
        found.setdefault(of, []).append(subject)
    return [
        line or f"{', '.join(subjects)}: {what.removeprefix('is ').removeprefix('its ')}"
        for (line, what), subjects in found.items()
    ]
