"""How tests ended, as pytest wrote it down."""

from __future__ import annotations

import fnmatch
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

# Test (glob over `module::name`) -> why it may be skipped.
EXPECTED_SKIPS: dict[str, str] = {}


@dataclass(frozen=True, slots=True)
class Case:
    """One test and how it ended."""

    name: str
    outcome: str  # passed, failed, skipped
    words: str


@dataclass(frozen=True, slots=True)
class Result:
    """One tier or story."""

    name: str
    cases: tuple[Case, ...]
    seconds: float
    code: int

    def count(self, outcome: str) -> int:
        return sum(1 for case in self.cases if case.outcome == outcome)

    @property
    def good(self) -> bool:
        return self.code == 0 and bool(self.cases) and not self.unexpected

    @property
    def unexpected(self) -> list[Case]:
        """Skips that nobody listed."""
        return [
            case
            for case in self.cases
            if case.outcome == "skipped"
            and not any(fnmatch.fnmatchcase(case.name, known) for known in EXPECTED_SKIPS)
        ]


def cases(report: Path) -> Iterator[Case]:
    """Tests of a JUnit report; a run that never got so far has none."""
    if not report.exists():
        return
    tree = ElementTree.parse(report)  # noqa: S314 (pytest wrote it just now)
    for entry in tree.iter("testcase"):
        name = f"{entry.get('classname')}::{entry.get('name')}"
        outcome, words = "passed", ""
        for kind in ("skipped", "failure", "error"):
            found = entry.find(kind)
            if found is not None:
                outcome = "skipped" if kind == "skipped" else "failed"
                words = (found.get("message") or "").splitlines()[0] if found.get("message") else ""
        yield Case(name, outcome, words)
