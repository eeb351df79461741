"""Which jobs run side by side, and in what order."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.e2e.harness.lab import ROOT
from tests.ledger import Ledger
from tests.runner import jobs, lanes
from tests.runner.jobs import Job
from tests.runner.lanes import Lanes
from tests.runner.results import Case, Result


@dataclass
class Clock:
    """A day on which every look at the jobs is a second later; who ran in which of them."""

    now: int = 0
    seen: list[set[str]] = field(default_factory=list)
    running: set[str] = field(default_factory=set)

    def sleep(self, _: float) -> None:
        self.seen.append(set(self.running))
        self.now += 1

    def lasting(self, name: str) -> range:
        """Its first second, and the one after its last."""
        found = [second for second, names in enumerate(self.seen) if name in names]
        return range(found[0], found[-1] + 1)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()

    class Fake:
        """Runs for as many seconds as its last pass says."""

        def __init__(self, job: Job, *, place: str, beside: bool) -> None:
            self.job, self.place, self.beside = job, place, beside
            self._end = found.now + job.seconds
            found.running.add(job.name)

        def ended(self) -> Result | None:
            if found.now < self._end:
                return None
            found.running.discard(self.job.name)
            return Result(self.job.name, (Case("test", "passed", ""),), self.job.seconds, 0)

        def __enter__(self) -> Fake:
            return self

        def __exit__(self, *_: object) -> None:
            found.running.discard(self.job.name)

    monkeypatch.setattr(lanes, "Running", Fake)
    monkeypatch.setattr(time, "sleep", found.sleep)
    return found


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Job]:
    def job(name: str, seconds: float, *, tier: bool = False, alone: str = "") -> Job:
        path = tmp_path / name
        if not tier:
            path.touch()
        return Job(name=name, path=path, seconds=seconds, alone=alone)

    return job


def test_stories_run_in_lanes_beside_tiers_and_the_longest_first(
    clock: Clock, make: Callable[..., Job]
) -> None:
    wanted = [make("t1", 3, tier=True), make("t2", 2, tier=True)]
    wanted += [make("short", 1), make("long", 4), make("middle", 2)]
    ended: list[Result] = []
    there = Lanes(wanted, 3, ended=ended.append)
    there.run()
    assert there.all == ["t1", "t2", "long", "middle", "short"]
    assert clock.lasting("t1") == range(3)
    assert clock.lasting("t2") == range(3, 5)
    assert clock.lasting("long") == range(4)
    assert clock.lasting("middle") == range(2)
    assert clock.lasting("short") == range(2, 3)
    assert sorted(result.name for result in ended) == sorted(there.all)


def test_in_one_lane_stories_come_after_the_tiers(clock: Clock, make: Callable[..., Job]) -> None:
    wanted = [make("t1", 1, tier=True), make("t2", 2, tier=True), make("short", 1), make("long", 2)]
    Lanes(wanted, 1, ended=lambda _: None).run()
    assert clock.seen == [{"t1"}, {"t2"}, {"t2"}, {"long"}, {"long"}, {"short"}]


def test_who_needs_the_computer_alone_comes_last(clock: Clock, make: Callable[..., Job]) -> None:
    wanted = [
        make("tier", 3, tier=True),
        make("gaps", 4, alone="why"),
        make("gaps-too", 1, alone="why"),
    ]
    Lanes([*wanted, make("story", 2)], 2, ended=lambda _: None).run()
    assert clock.seen == [{"tier", "story"}] * 2 + [{"tier"}] + [{"gaps"}] * 4 + [{"gaps-too"}]


def test_a_lane_that_is_free_gets_more_as_long_as_there_is_more(
    clock: Clock, make: Callable[..., Job]
) -> None:
    waiting = [[make("first", 2)], [make("second", 1, alone="why")], []]
    there = Lanes([make("story", 1)], 1, ended=lambda _: None, more=lambda _: waiting.pop(0))
    there.run()
    assert there.begun == ["story", "first", "second"]
    assert waiting == []


class Baker:
    """Makes what `late` needs within three looks."""

    def __init__(self) -> None:
        self.looks, self.ended = 0, False

    @property
    def busy(self) -> bool:
        return self.looks < 3

    def lacks(self, job: Job) -> bool:
        return self.busy and job.name.startswith("late")

    def look(self) -> None:
        self.looks += 1

    def __enter__(self) -> Baker:
        return self

    def __exit__(self, *_: object) -> None:
        self.ended = True


def test_a_story_waits_for_its_bundle_and_others_pass_it(
    clock: Clock, make: Callable[..., Job]
) -> None:
    baker = Baker()
    wanted = [make("late", 9), make("story", 1), make("gaps", 1, alone="why")]
    Lanes(wanted, 1, ended=lambda _: None, builds=baker).run()  # type: ignore[arg-type]
    assert clock.seen == [{"story"}, set(), set(), *[{"late"}] * 9, {"gaps"}]
    assert baker.ended


def test_nothing_runs_beside_who_needs_the_computer_alone_no_build_either(
    clock: Clock, make: Callable[..., Job]
) -> None:
    wanted = [make("gaps", 1, alone="why")]
    Lanes(wanted, 1, ended=lambda _: None, builds=Baker()).run()  # type: ignore[arg-type]
    assert clock.seen == [set(), set(), set(), {"gaps"}]


class Idle:
    """There is time for one more from the third look on after whoever has begun last."""

    def __init__(self) -> None:
        self.looks = 0

    def look(self) -> None:
        self.looks += 1

    def begun(self) -> None:
        self.looks = 0

    def is_there(self) -> bool:
        return self.looks >= 3


def test_where_time_is_left_a_story_more_runs_beside_up_to_one_a_core(
    clock: Clock, make: Callable[..., Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lanes, "_cores", lambda: 2)
    wanted = [make("a", 9), make("b", 8), make("c", 2), make("gaps", 1, alone="why")]
    Lanes(wanted, 1, ended=lambda _: None, spare=Idle()).run()  # type: ignore[arg-type]
    assert clock.lasting("a") == range(9)
    assert clock.lasting("b") == range(3, 11)
    assert clock.lasting("c") == range(9, 11)  # both cores had one until then
    assert clock.seen[-1] == {"gaps"}


def test_whatever_ends_the_run_ends_its_jobs(clock: Clock, make: Callable[..., Job]) -> None:
    def interrupt(_: Result) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Lanes([make("one", 1), make("two", 5)], 2, ended=interrupt).run()
    assert clock.running == set()


def test_stories_that_run_alone_say_why() -> None:
    ledger = Ledger(ROOT / "tests/e2e/none.json", ROOT)
    told = {name: jobs.story(name, ledger).alone for name in jobs.stories()}
    assert {name for name, why in told.items() if why} == {
        file.stem.removeprefix("test_")
        for file in jobs.STORIES.glob("test_*.py")
        if "\nALONE = " in file.read_text()
    }
    assert told["virtual_ip_grows"]
