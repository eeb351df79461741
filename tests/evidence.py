"""`python -m tests.evidence [--check]`: docs/evidence.md and the figures of README.md, from the record of stories that passed.

--check writes nothing: exit code 1 when a page is not what the record says, or README.md has a figure that the page
has not.
"""

# ruff: noqa: T201 (talks to people)

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from tests.e2e.harness.lab import ROOT
from tests.ledger import RECORD, Ledger, Passed
from tests.measures import Note, Served, Took
from tests.runner.jobs import STORIES, stories

PAGE = "docs/evidence.md"
README = "README.md"
_BEGIN, _END = "<!-- figures: begin (make evidence) -->", "<!-- figures: end -->"
# A number of what was measured: a time, a share, a count of all.
_FIGURE = re.compile(r"(?<![\w.-])\d[\d.,]*(?: ?(?:ms|s|min|%)(?![\w%])| of (?:all )?\d[\d.,]*)")
_FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)

_INTRODUCTION = f"""\
# Evidence

Every row is a story of `tests/e2e` that passed: a test that makes a cluster of lab machines, changes it with the real engine and the
real kubeadm, breaks it, and checks what clients saw. `make e2e STORY=name` runs one. `make evidence` writes this page from
`{RECORD}`, which a run writes when a story passes; a story that fails loses its row.

Clients ask one request after another on new connections, each waiting for the one before. *Failed* counts requests without an
answer at the first try, and *after a retry* those whose second try, at the next address, failed too. *Gap* is the longest time between
two good answers of one client. *Load* is that of the computer over the last five minutes of the story: engine, clients and all machines of
the cluster run on it. *Code* says whether the product was the same as in the newest row (latest) or has changed since (older).
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A row of README.md: a measure of one story, and what clients saw. `took` and `during` are globs."""

    label: str
    story: str
    took: str
    during: str = ""


FIGURES = (
    Figure(
        label="Create 3 control plane nodes and 2 workers, machines included",
        story="create_3_2",
        took="up of 3 masters and 2 workers",
    ),
    Figure(
        label="`pulumi up` with nothing to do: 0 resources, 0 SSH connections",
        story="create_3_2",
        took="up without an edit*",
    ),
    Figure(
        label="The etcd leader loses power; until the cluster is whole again",
        story="create_3_2",
        took="cluster healthy after that master*",
        during="the master that leads etcd loses power",
    ),
    Figure(
        label="Add a worker",
        story="add_and_remove_a_worker",
        took="up that adds a worker",
    ),
    Figure(
        label="Grow from 1 to 3 control plane nodes under load",
        story="grow_one_to_three",
        took="up from 1 to 3 masters",
        during="while growing",
    ),
    Figure(
        label="Replace every control plane node under load, one per update",
        story="replace_every_master",
        took="master-* replaced by master-*",
        during="every master replaced",
    ),
    Figure(
        label="Upgrade a minor version, 3 control plane nodes and 3 workers, under load",
        story="upgrade_minor",
        took="* of 3 masters and 3 workers",
        during="*",
    ),
    Figure(
        label="All control plane disks lost: the update after the restore",
        story="backup_and_restore",
        took="up after the restore*",
    ),
)


def page(entries: Mapping[str, Passed], shows: Mapping[str, str]) -> str:
    """The whole page; `shows` says what each story is about, by name."""
    latest = max(entries.values(), key=lambda one: one.at).code if entries else ""
    rows = [_row(name, shows[name], entries[name], latest) for name in shows if name in entries]
    missing = [name for name in shows if name not in entries]
    head = ("story", "what it shows", "whole story", "failed", "after a retry", "gap", "load")
    parts = [
        _INTRODUCTION,
        "## Stories that passed\n",
        _table((*head, "code", "date", "commit", "machine"), rows),
    ]
    if missing:
        words = (
            "No pass on record: the story has failed since, or has not run since the record began."
        )
        parts += ["\n## Stories without a pass\n", f"{words}\n"]
        parts += [f"- `{name}`: {shows[name]}" for name in missing]
    parts += ["\n## Measures of each story", *_details(entries, shows)]
    return "\n".join(parts) + "\n"


def figures(entries: Mapping[str, Passed]) -> str:
    """The rows of README.md; a figure whose story has no such measure on record is left out."""
    rows = [row for one in FIGURES if (row := _figure(one, entries.get(one.story)))]
    return _table(("what", "time", "requests that failed", "longest gap", "story"), rows)


def unproven(readme: str, page: str) -> list[str]:
    """Figures in a text that the page does not have."""
    prose = _FENCED.sub("", readme)
    known = {_plain(found) for found in _FIGURE.findall(page)}
    return [found for found in _FIGURE.findall(prose) if _plain(found) not in known]


def what_stories_show() -> dict[str, str]:
    """The first line of each story, by its name."""
    found = {}
    for name in stories():
        text = ast.get_docstring(ast.parse((STORIES / f"test_{name}.py").read_text())) or ""
        first = text.split("\n\n")[0].replace("\n", " ").removeprefix("Story: ").rstrip(".")
        found[name] = first.replace("|", "/")
    return found


def _row(name: str, shows: str, entry: Passed, latest: str) -> tuple[str, ...]:
    return (
        f"`{name}`",
        shows,
        _seconds(entry.seconds),
        *_clients([one for one in entry.measures if isinstance(one, Served)]),
        "" if entry.load is None else str(entry.load),
        "latest" if entry.code == latest else "older",
        entry.at[:10],
        entry.commit,
        entry.machine,
    )


def _clients(served: Sequence[Served]) -> tuple[str, str, str]:
    """Failed of all, failed after a retry, longest gap."""
    if not served:
        return "", "", ""
    requests = sum(one.requests for one in served)
    failed = sum(one.failed for one in served)
    again = sum(one.failed_twice for one in served)
    gap = max(one.gap_ms for one in served)
    return f"{failed} of {requests}", str(again), _seconds(gap / 1000)


def _details(entries: Mapping[str, Passed], names: Iterable[str]) -> Iterator[str]:
    for name in names:
        entry = entries.get(name)
        if entry is None or not entry.measures:
            continue
        took = [one for one in entry.measures if isinstance(one, Took)]
        served = [one for one in entry.measures if isinstance(one, Served)]
        notes = [one for one in entry.measures if isinstance(one, Note)]
        yield f"\n### {name}"
        if took:
            rows = [(one.what, _seconds(one.seconds)) for one in took]
            yield "\n" + _table(("update or recovery", "time"), rows)
        if served:
            head = ("while", "client", "failed", "after a retry", "gap")
            yield "\n" + _table(head, [*_by_client(served)])
        if notes:
            yield "\n" + "\n".join(f"- {one.text}" for one in notes)


def _by_client(served: Sequence[Served]) -> Iterator[tuple[str, ...]]:
    """A row for each client, and one for all of the same time."""
    for during in dict.fromkeys(one.during for one in served):
        same = [one for one in served if one.during == during]
        yield from ((during, one.client, *_clients([one])) for one in same)
        if len(same) > 1:
            yield (during, "all", *_clients(same))


def _figure(figure: Figure, entry: Passed | None) -> tuple[str, ...] | None:
    measures = entry.measures if entry else ()
    took = [
        one.seconds
        for one in measures
        if isinstance(one, Took) and fnmatchcase(one.what, figure.took)
    ]
    served = [
        one
        for one in measures
        if isinstance(one, Served) and figure.during and fnmatchcase(one.during, figure.during)
    ]
    if not took or (figure.during and not served):
        return None
    failed, again, gap = _clients(served)
    requests = f"{failed}, {again} after a retry" if served else ""
    return (figure.label, ", ".join(map(_seconds, took)), requests, gap, f"`{figure.story}`")


def _seconds(value: float) -> str:
    return f"{value:.0f} s" if value >= 10 else f"{value:.1f} s"


def _plain(figure: str) -> str:
    return figure.rstrip(".,").replace(" ", "").replace(",", "")


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def _with_figures(readme: str, table: str) -> str:
    """Raises ValueError when the marks are not there."""
    before, begin, rest = readme.partition(_BEGIN)
    _, end, after = rest.partition(_END)
    if not begin or not end:
        raise ValueError(f"{README} has no {_BEGIN} and {_END}")
    return f"{before}{_BEGIN}\n{table}\n{_END}{after}"


def pages(root: Path = ROOT) -> dict[str, str]:
    """Both as the record says they are, by their paths."""
    entries = Ledger(root / RECORD, root).entries()
    readme = _with_figures((root / README).read_text(), figures(entries))
    return {PAGE: page(entries, what_stories_show()), README: readme}


def write(root: Path = ROOT) -> None:
    """Make them so."""
    for name, text in pages(root).items():
        (root / name).write_text(text)


def main(arguments: Sequence[str], root: Path = ROOT) -> int:
    """Exit code 1 when --check finds something."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--check", action="store_true")
    checks = parser.parse_args(arguments).check
    if not checks:
        write(root)
        return 0
    wanted = pages(root)
    problems = [
        f"{name}: not what {RECORD} says; run make evidence"
        for name, text in wanted.items()
        if not (root / name).exists() or (root / name).read_text() != text
    ]
    problems += [
        f"{README}: {figure!r} is not on {PAGE}; take it out, or let a story measure it"
        for figure in unproven(wanted[README], wanted[PAGE])
    ]
    print("\n".join(problems), end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
