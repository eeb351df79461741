"""Which stories `make test` runs beside the core ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests import run
from tests.ledger import Ledger
from tests.run import CORE, CORE_S, Case, Result, next_share


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    """Two stories beside those of the core; `quick` passed before `slow` did."""
    for name in (*CORE, "quick", "slow"):
        (tmp_path / f"test_{name}.py").touch()
    monkeypatch.setattr(run, "STORIES", tmp_path)
    entries = {
        name: {"content": "", "commit": "", "at": f"2026-01-{day}T00:00:00Z", "seconds": seconds}
        for name, day, seconds in (("quick", "10", 60), ("slow", "11", 500))
    }
    (tmp_path / "passed.json").write_text(json.dumps(entries))
    return Ledger(tmp_path / "passed.json", tmp_path)


def ran(*names: str, seconds: float) -> list[Result]:
    case = Case("test", "passed", "")
    return [Result(name, (case,), seconds / len(names), 0) for name in names]


def chosen(ledger: Ledger, results: list[Result]) -> list[str]:
    return [name for name, _ in next_share(ledger, results)]


def test_the_longest_ago_runs_however_late_it_is(ledger: Ledger) -> None:
    assert chosen(ledger, ran("unit", *CORE, seconds=2 * CORE_S)) == ["quick"]


def test_the_next_one_runs_while_there_is_time_for_it(ledger: Ledger) -> None:
    assert chosen(ledger, ran("unit", *CORE, "quick", seconds=CORE_S - 501)) == ["slow"]
    assert chosen(ledger, ran("unit", *CORE, "quick", seconds=CORE_S - 499)) == []


def test_each_runs_once(ledger: Ledger) -> None:
    assert chosen(ledger, ran("unit", *CORE, "quick", "slow", seconds=1)) == []
