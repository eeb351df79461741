"""What people read of a run."""

# ruff: noqa: T201 (talks to people)

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests import measures
from tests.ledger import Ledger, Passed
from tests.runner.jobs import LOGS, TIERS, stories
from tests.runner.results import Result

_TAIL = 150  # lines


def say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} tests   {text}", flush=True)


def tail(log: Path) -> str:
    """The end of a log, under its name."""
    lines = log.read_text(errors="replace").splitlines()[-_TAIL:]
    return "\n".join([f"--- {log}, its last {len(lines)} lines", *lines, f"--- end of {log.name}"])


def results(
    ended: Sequence[Result], wanted: Sequence[str], before: Mapping[str, Passed], *, seconds: float
) -> bool:
    """Say what ran, how it ended and how long it took; whether all of it is good."""
    print("\nWhat ran:")
    for result in ended:
        verdict = "ok" if result.good else "FAILED"
        if not result.cases:
            verdict = f"FAILED: no test ran (pytest exit {result.code})"
        counts = f"{result.count('passed')} passed, {result.count('failed')} failed"
        print(f"  {result.name:<34} {result.seconds:6.0f} s  {counts:<24} {verdict}")
    missing = [name for name in wanted if name not in {result.name for result in ended}]
    for name in missing:
        print(f"  {name:<34} did not run to its end")
    for name, entry in before.items():
        print(f"  {name:<34} {entry.seconds:6.0f} s  passed {entry.at:<21} ok, left out")
    _measures([result.name for result in ended])
    totals = {
        word: sum(one.count(word) for one in ended) for word in ("passed", "failed", "skipped")
    }
    print(
        f"\n{len(ended)} of {len(wanted)} tiers and stories in {seconds / 60:.1f} min; logs in {LOGS}/tests"
    )
    if before:
        print(f"{len(before)} stories passed before on this content")
    print(", ".join(f"{count} {word}" for word, count in totals.items()), flush=True)
    _details(ended)
    return not missing and all(result.good for result in ended)


def _details(ended: Sequence[Result]) -> None:
    """Skipped and failed tests by name: the last words, so that whoever cuts a long log keeps them."""
    for result in ended:
        for case in result.cases:
            if case.outcome == "skipped":
                mark = "skipped, NOT EXPECTED" if case in result.unexpected else "skipped"
                print(f"  {mark}  {case.name}: {case.words}")
    for result in ended:
        for case in result.cases:
            if case.outcome == "failed":
                print(f"  failed   {case.name}: {case.words}")
        if not result.good:
            print(
                f"  failed   {result.name}: its log is {LOGS / 'tests' / result.name}.log",
                flush=True,
            )


def _measures(names: Sequence[str]) -> None:
    """Numbers that the stories of this run wrote down."""
    for name in names:
        if name not in TIERS:
            for measure in measures.read(LOGS / "e2e" / name):
                print(f"  measured {name}: {measures.sentence(measure)}")


def record(ledger: Ledger) -> None:
    """When each story passed last and on which commit, the longest ago first."""
    entries = ledger.entries()
    for name in ledger.by_age(stories()):
        if name not in entries:
            print(f"  {name:<34} no pass on record")
            continue
        entry = entries[name]
        now = "  on this very content" if entry.content == ledger.content(name) else ""
        print(f"  {name:<34} {entry.at}  {entry.commit:<11} {entry.seconds:6.0f} s{now}")
