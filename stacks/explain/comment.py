"""The change plan as Markdown, for a comment in a pull request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stacks.config import redaction
from stacks.edits import endings
from stacks.explain import folding, markdown
from stacks.explain.folding import Row
from stacks.explain.headline import audiences
from stacks.explain.report import NOTHING, UNCOMPARABLE, Report

_MOST = 40  # groups of nodes that one row shows


def as_markdown(said: Report, warnings: Sequence[tuple[str, str]] = ()) -> str:
    """Nothing that a config holds becomes a link, a mention or HTML."""
    lines = [f"**{_words(said.title)}**", ""]
    if said.is_empty:
        lines += [_words(NOTHING), ""]
    else:
        lines += ["| | |", "|---|---|", *_headline(said), ""]
    lines += _notes(said, warnings)
    if said.waves:
        found = folding.rows(said.waves)
        lines += ["| # | phase | nodes | order | change |", "|---|---|---|---|---|"]
        lines += [line for number, row in enumerate(found, 1) for line in _rows(said, number, row)]
        lines += ["", "<details><summary>Every action, check and interruption</summary>", ""]
        lines += [line for number, row in enumerate(found, 1) for line in _details(number, row)]
        lines += ["</details>"]
    return "\n".join(lines).rstrip() + "\n"


def _headline(said: Report) -> Iterator[str]:
    head = said.headline
    yield f"| Changes | {'<br>'.join(map(_words, head.edits))} |"
    yield f"| Nodes | {_words(head.nodes.words)} |"
    found = [
        f"{_words(audience)}: {_words(what)}" if audience else _words(what)
        for audience, what in audiences(head.disruption)
    ]
    if not said.changes.comparable:
        found = ["not known"]
    if found:
        yield f"| Disruption | {'<br>'.join(found)} |"
    yield f"| Roll back | {_words(head.way_back)} |"


def _notes(said: Report, warnings: Sequence[tuple[str, str]]) -> Iterator[str]:
    for one in said.verdict.allowed:
        yield f"> **allowed** {markdown.code(one.id)}: {_words(one.text)}\n"
    for line in said.changes.program:
        yield f"> this version of the program: {_words(line)}\n"
    if said.sizing:
        yield f"> {_words(said.sizing)}\n"
    if not said.changes.comparable:
        yield f"> {_words(UNCOMPARABLE)}\n"
    if warnings:
        yield f"> **Warnings: {len(warnings)}**"
        for path, text in warnings:
            yield f"> - {markdown.code(redaction.without(path))}: {_words(text)}"
        yield ""
    if said.endings:
        yield f"{_words(endings.line(said.endings))}\n"


def _rows(said: Report, number: int, row: Row) -> Iterator[str]:
    names = [name for name, _ in said.changes.addons]
    cells = [("", line) for line in folding.gathered(row.lines, names)]
    for group in row.groups[:_MOST]:
        cells.append((group.nodes, " · ".join(dict.fromkeys(map(folding.short, group.texts)))))
    if len(row.groups) > _MOST:
        cells.append(("", f"and {len(row.groups) - _MOST} more groups of nodes"))
    first = (str(number), _words(row.title), row.order)
    for nodes, what in cells or [("", "")]:
        place, title, order = first
        yield f"| {place} | {title} | {_words(nodes)} | {order} | {_words(what)} |"
        first = ("", "", "")


def _details(number: int, row: Row) -> Iterator[str]:
    yield f"**{number}.** {_words(row.title)}\n"
    for line in row.lines:
        yield f"- {_words(line)}"
    for group in row.groups:
        yield f"- {_words(group.nodes)}"
        yield from (f"  - {_words(text)}" for text in group.texts)
    yield from (f"- checked: {_words(text)}" for text in row.checked)
    yield f"- interrupted: {_words(row.abort)}"
    yield ""


def _words(said: str) -> str:
    return markdown.escaped(redaction.without(said))
