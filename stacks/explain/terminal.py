"""The change plan for a terminal, and for the engine's messages."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from datetime import datetime

from stacks.config import redaction
from stacks.edits import endings
from stacks.explain import folding
from stacks.explain.folding import Group, Row
from stacks.explain.headline import audiences
from stacks.explain.report import NOTHING, UNCOMPARABLE, Report

_WIDTH = 100
_LABEL = 14  # columns before what a label is about
_IN_ROW = "       "
_MOST = 5  # groups of nodes, and lines, that one row shows
_MORE = "Every action, check and interruption: --verbose (make plan VERBOSE=1)."


def as_text(
    said: Report,
    warnings: Sequence[tuple[str, str]] | None = None,
    now: datetime | None = None,
    *,
    verbose: bool = False,
) -> str:
    """`warnings`: None where they are told elsewhere; `now`: with the days that are left."""
    lines = [said.title, "", *_headline(said, warnings, now), ""]
    seen: dict[str, int] = {}
    for number, row in enumerate(folding.rows(said.waves), start=1):
        lines += _verbose(number, row) if verbose else _compact(said, number, row, seen)
    if said.waves and not verbose:
        lines += ["", f"  {_MORE}"]
    return redaction.without("\n".join(lines).rstrip() + "\n")


def _headline(
    said: Report, warnings: Sequence[tuple[str, str]] | None, now: datetime | None
) -> Iterator[str]:
    head = said.headline
    if said.is_empty:
        yield from _labelled("Changes", NOTHING)
    else:
        for number, edit in enumerate(head.edits):
            yield from _labelled("" if number else "Changes", edit)
        yield from _labelled("Nodes", head.nodes.words)
        for number, (audience, what) in enumerate(audiences(head.disruption)):
            label = "" if number else "Disruption"
            yield from _labelled(label, f"{audience}: {what}" if audience else what)
        if not said.changes.comparable:
            yield from _labelled("Disruption", "not known")
        yield from _labelled("Roll back", head.way_back)
    for one in said.verdict.allowed:
        yield from _labelled("ALLOWED", f"{one.id}: {one.path}: {one.text}")
    for line in said.changes.program:
        yield from _labelled("Program", line)
    if said.sizing:
        yield from _labelled("Sizing", said.sizing)
    if not said.changes.comparable:
        yield from _labelled("Note", UNCOMPARABLE)
    if said.endings:
        yield from _labelled("Expiry", endings.line(said.endings, now))
    if warnings is not None:
        yield from _labelled("Warnings", str(len(warnings)) if warnings else "none")
        for path, text in warnings:
            yield from _labelled("", f"{path}: {text}")


def _labelled(label: str, text: str) -> list[str]:
    return _wrapped(f"  {label:<{_LABEL - 3}} ", text, " " * _LABEL)


def _wrapped(first: str, text: str, rest: str) -> list[str]:
    return textwrap.wrap(
        text,
        _WIDTH,
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    ) or [first.rstrip()]


def _compact(said: Report, number: int, row: Row, seen: dict[str, int]) -> Iterator[str]:
    """`seen`: the row that has told the same before."""
    names = [name for name, _ in said.changes.addons]
    lines = folding.gathered(row.lines, names)
    texts = [" · ".join(lines[:_MOST]) + _rest(lines, "lines")] if lines else []
    if len(row.groups) == 1:
        [group] = row.groups
        text = " · ".join([*texts, _shortened(group)])
        first = seen.setdefault(text, number)
        known = first != number and len(text) > _WIDTH - len(_IN_ROW)
        yield from _head(number, row, group.nodes)
        yield from _wrapped(_IN_ROW, f"as in {first}" if known else text, _IN_ROW)
        return
    yield from _head(number, row, "")
    for text in texts:
        yield from _wrapped(_IN_ROW, text, _IN_ROW)
    for group in row.groups[:_MOST]:
        text = f"{group.nodes}: {_shortened(group)}"
        yield from _wrapped(_IN_ROW, text, f"{_IN_ROW}  ")
    if len(row.groups) > _MOST:
        count = sum(len(group.names) for group in row.groups[_MOST:])
        yield f"{_IN_ROW}and {count} more nodes, with other actions"


def _rest(items: Sequence[object], what: str) -> str:
    return f" · and {len(items) - _MOST} more {what}" if len(items) > _MOST else ""


def _shortened(group: Group) -> str:
    return " · ".join(dict.fromkeys(map(folding.short, group.texts)))


def _head(number: int, row: Row, nodes: str) -> list[str]:
    title = f"{row.title}, {row.order}" if row.order else row.title
    return _wrapped(f"  {number:>2}  ", f"{title}   {nodes}" if nodes else title, _IN_ROW)


def _verbose(number: int, row: Row) -> Iterator[str]:
    yield from _head(number, row, "")
    yield from (f"{_IN_ROW}{line}" for line in row.lines)
    for group in row.groups:
        yield f"{_IN_ROW}{group.nodes}"
        yield from (f"{_IN_ROW}    {text}" for text in group.texts)
    yield from (f"{_IN_ROW}checked: {text}" for text in row.checked)
    yield f"{_IN_ROW}interrupted: {row.abort}"
