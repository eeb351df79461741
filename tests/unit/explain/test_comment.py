"""The plan as Markdown: a table that a reviewer reads, in which no value does anything."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from stacks.checks.refusals import Refusal
from stacks.config import redaction
from stacks.edits.transition import Verdict
from stacks.explain import comment
from stacks.explain.actions import Action, NodeChange, Wave
from stacks.explain.disruption import Disruption
from stacks.explain.report import Report
from tests.unit.configs import lab
from tests.unit.explain.reports import made


def test_it_is_a_table_of_the_headline_and_one_of_the_phases() -> None:
    lines = comment.as_markdown(made(lab(), lab({"pools.worker.count": 4}))).splitlines()
    rows = [line for line in lines if line.startswith("| ")]
    assert lines[0] == "**Plan for cluster dev, compared with the config last applied**"
    assert rows[:8] == [
        "| | |",
        "| Changes | Add 2 workers (worker-3, worker-4) |",
        "| Nodes | 2 to add, 0 to change, 0 to replace, 0 to remove, 5 unchanged |",
        "| Disruption | none (no API server restarts; no etcd member restarts; no pod is evicted) |",
        "| Roll back | at any time: edit back, then run up again |",
        "| # | phase | nodes | order | change |",
        "| 1 | new machines | \\+ worker-3, worker-4 | in parallel | make the machine · preflight, "
        "then packages, kernel settings, HAProxy, containerd, kubelet |",
        "| 2 | add-ons |  |  | serving-certificates: kubelets get certificates for these "
        "addresses, nothing restarts |",
    ]


def test_checks_and_interruptions_are_behind_a_click() -> None:
    before, _, behind = comment.as_markdown(made(lab(), lab({"pools.worker.count": 4}))).partition(
        "<details>"
    )
    assert "checked: " not in before
    assert "- checked: each worker that joins announces what it has applied" in behind
    assert "- interrupted: fewer workers" in behind


def test_warnings_stand_above_the_phases() -> None:
    text = comment.as_markdown(made(None, lab()), [("pools", "2 members tolerate no failure")])
    assert "> **Warnings: 1**\n> - `pools`: 2 members tolerate no failure\n" in text
    assert text.index("Warnings") < text.index("| # |")


_HOSTILE = [
    "|", "\\", "`", "``", "```", "~~~", "<b>", "<!--", "-->", "</details>", "<script>", "<img src=x onerror=y>",
    "[x](http://e.example)", "![i](x)", "[x]: y", "http://e.example", "https://e.example/?a|b", "www.e.example", "javascript:x",
    "@octocat", "@org/team", "#12", "org/repo#1", "GH-7", "a@b.example", "*", "**", "_", "__", "~~", "~", "$x$", "^",
    "\n", "\n\n# h\n", "\n- x", "\n> q", "\n| a | b |\n|---|---|\n", "\r", "\t", "\u2028", "\x0b", "\x85", "\x00",
    "1. ", "2) ", "- ", "+ ", "= ", "> ", "# ", "    ", "&lt;", "&#124;", "&vert;", "&amp;", ":", ": ", " ", " (", ", ",
    "a", "B9", "1", "-2", "é", "worker-1",
]  # fmt: skip
# At least one letter: an empty value has no place of its own in what is rendered.
hostile = st.lists(st.sampled_from(_HOSTILE) | st.text(max_size=3), min_size=1, max_size=8).map(
    lambda parts: "".join([*parts, "z"])
)
_EVERY = 14
START = made(lab(), lab({"pools.worker.count": 3}))


def holding(values: list[str]) -> tuple[Report, list[tuple[str, str]]]:
    """A plan and its warnings whose every value is one of these."""
    node = NodeChange(
        name=values[0],
        kind="changed",
        roles=("worker",),
        actions=(Action(phase="node", text=values[1]),),
    )
    wave = Wave(
        title=values[2],
        order="once",
        nodes=(node,),
        lines=(values[3],),
        checked=values[4],
        abort=values[5],
    )
    pods = Disruption(audience="pods", notices=(values[6],), why_none="")
    head = replace(START.headline, edits=(values[7],), disruption=(pods,), way_back=values[8])
    allowed = Refusal("kind", values[9], "a.path", values[10])
    changes = replace(START.changes, program=(values[11],))
    said = replace(
        START, waves=(wave,), headline=head, changes=changes, verdict=Verdict(allowed=(allowed,))
    )
    return said, [(values[12], values[13])]


def tokens(text: str) -> list[Token]:
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    return [*_flat(parser.parse(text))]


def _flat(found: Iterable[Token]) -> Iterable[Token]:
    for token in found:
        yield token
        yield from _flat(token.children or ())


def structure(text: str) -> list[str]:
    """All that is rendered but the text itself, HTML word by word."""
    return [
        token.content if token.type.startswith("html") else token.type
        for token in tokens(text)
        if token.type not in ("text", "code_inline", "text_special")
    ]


def columns(line: str) -> int:
    """Cells of a row of a table as GitHub counts them: in code too, a pipe parts cells."""
    return re.sub(r"\\.", "", line).count("|") - 1


HARMLESS = structure(comment.as_markdown(*holding(["z"] * _EVERY)))


@settings(deadline=None, max_examples=200, suppress_health_check=[*HealthCheck])
@given(st.lists(hostile, min_size=_EVERY, max_size=_EVERY))
def test_no_value_becomes_more_than_text(values: list[str]) -> None:
    text = comment.as_markdown(*holding(values))
    assert structure(text) == HARMLESS
    # What GitHub makes links of in the text that has been rendered.
    for token in tokens(text):
        if token.type == "text":
            assert not re.search(r"@[A-Za-z0-9]|#[0-9]|(?i:\bwww\.)|(?i:\bGH-[0-9])", token.content)
    assert "://" not in re.sub(r"`[^`]*`", "", text)
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert [columns(line) for line in rows] == [2] * 6 + [5] * 4


def test_what_a_value_says_can_still_be_read() -> None:
    value = "a|b <b> *c* `d|e` _f_ [g](h)"
    text = comment.as_markdown(*holding([value, *["z"] * (_EVERY - 1)]))
    shown = "".join(
        token.content for token in tokens(text) if token.type in ("text", "code_inline")
    )
    assert redaction.without(value).replace("`", "") in shown
