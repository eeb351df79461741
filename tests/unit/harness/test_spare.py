"""When one more story fits beside those that run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.runner import spare
from tests.runner.spare import Spare


@dataclass
class Computer:
    """Two cores, a hundred ticks a second each, that are idle for a share of the time."""

    now: float = 0
    idle: float = 0
    total: int = 0

    def spend(self, there: Spare, seconds: int, *, idle: float) -> None:
        for _ in range(seconds):
            self.now += 1
            self.idle += 200 * idle
            self.total += 200
            there.look()


@pytest.fixture
def computer() -> Computer:
    return Computer()


@pytest.fixture
def there(computer: Computer, monkeypatch: pytest.MonkeyPatch) -> Spare:
    monkeypatch.setattr(spare, "stories_that_fit", lambda: 1)
    return Spare(ticks=lambda: (int(computer.idle), computer.total), clock=lambda: computer.now)


def test_half_a_minute_of_idle_time_is_room_for_one_more(computer: Computer, there: Spare) -> None:
    assert not there.is_there()
    computer.spend(there, 30, idle=0.5)
    assert not there.is_there()  # of 29 s alone
    computer.spend(there, 1, idle=0.5)
    assert there.is_there()


def test_a_busy_half_minute_is_none_whatever_was_before(computer: Computer, there: Spare) -> None:
    computer.spend(there, 300, idle=0.9)
    computer.spend(there, 31, idle=0.3)
    assert not there.is_there()


def test_who_has_just_begun_is_watched_for_as_long(computer: Computer, there: Spare) -> None:
    computer.spend(there, 40, idle=0.9)
    assert there.is_there()
    there.begun()
    computer.spend(there, 20, idle=0.9)
    assert not there.is_there()
    computer.spend(there, 11, idle=0.9)
    assert there.is_there()


def test_without_memory_there_is_no_room(
    computer: Computer, there: Spare, monkeypatch: pytest.MonkeyPatch
) -> None:
    computer.spend(there, 40, idle=0.9)
    monkeypatch.setattr(spare, "stories_that_fit", lambda: 0)
    assert not there.is_there()


def test_time_of_nice_programs_is_there_for_a_story(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stat = tmp_path / "stat"
    stat.write_text("cpu  10 20 30 400 5 6 7 8 9 9\ncpu0 1 1 1 1 1 1 1 1 1 1\n")
    monkeypatch.setattr(spare, "Path", lambda _: stat)
    assert spare._ticks() == (20 + 400 + 5, 10 + 20 + 30 + 400 + 5 + 6 + 7 + 8)


def test_this_computer_can_be_looked_at() -> None:
    idle, total = spare._ticks()
    assert 0 < idle < total
    assert spare.stories_that_fit() < 10_000
