"""Stories run side by side: what one of them has on this computer no other has."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

from tests.e2e.harness.lab import ROOT

# What makes machines: stories, the tests of phases, the benchmarks.
_MAKERS = ("tests/e2e/test_*.py", "tests/scripts/phases.py", "tests/bench/*.py")
_RANGE = re.compile(r"\b10\.93\.\d+")
_LAB = re.compile(r'\b(?:NAME|LAB) = "(test-[^"]+)"|\bconfig\.\w+\("(test-[^"]+)"')


def owners(pattern: re.Pattern[str]) -> dict[str, set[str]]:
    """Files by what they hold."""
    out: dict[str, set[str]] = defaultdict(set)
    for file in (file for maker in _MAKERS for file in sorted(ROOT.glob(maker))):
        for found in pattern.finditer(file.read_text()):
            out[next(filter(None, (*found.groups(), found[0])))].add(file.name)
    return out


def shared(found: dict[str, set[str]]) -> dict[str, set[str]]:
    return {what: files for what, files in found.items() if len(files) > 1}


def stories() -> set[str]:
    return {Path(file).name for file in ROOT.glob("tests/e2e/test_*.py")}


def test_each_has_addresses_of_its_own() -> None:
    found = owners(_RANGE)
    assert stories() <= set().union(*found.values())
    assert shared(found) == {}


def test_each_has_labs_of_its_own() -> None:
    found = owners(_LAB)
    assert stories() <= set().union(*found.values())
    assert shared(found) == {}
