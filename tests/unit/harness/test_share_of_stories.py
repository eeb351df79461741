"""Which stories `make test` runs beside the core ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.ledger import Ledger
from tests.run import CORE, CORE_S, next_share
from tests.runner import jobs


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    """Two stories beside those of the core; `quick` passed before `slow` did."""
    for name in (*CORE, "quick", "slow"):
        (tmp_path / f"test_{name}.py").touch()
    monkeypatch.setattr(jobs, "STORIES", tmp_path)
    entries = {
        name: {"content": "", "commit": "", "at": f"2026-01-{day}T00:00:00Z", "seconds": seconds}
        for name, day, seconds in (("quick", "10", 60), ("slow", "11", 500))
    }
    (tmp_path / "passed.json").write_text(json.dumps(entries))
    return Ledger(tmp_path / "passed.json", tmp_path)


def chosen(ledger: Ledger, *begun: str, seconds: float) -> list[str]:
    return [job.name for job in next_share(ledger, begun, seconds)]


def test_the_longest_ago_runs_however_late_it_is(ledger: Ledger) -> None:
    assert chosen(ledger, "unit", *CORE, seconds=2 * CORE_S) == ["quick"]


def test_the_next_one_runs_while_there_is_time_for_it(ledger: Ledger) -> None:
    assert chosen(ledger, "unit", *CORE, "quick", seconds=CORE_S - 501) == ["slow"]
    assert chosen(ledger, "unit", *CORE, "quick", seconds=CORE_S - 499) == []


def test_each_runs_once(ledger: Ledger) -> None:
    assert chosen(ledger, "unit", *CORE, "quick", "slow", seconds=1) == []
