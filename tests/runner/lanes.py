"""Jobs side by side: tiers one after another in one lane, stories in the others, and at the end those that need the computer alone."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack

from tests.runner.builds import Builds
from tests.runner.jobs import Job, Running
from tests.runner.report import say, tail
from tests.runner.results import Result
from tests.runner.spare import Spare, stories_that_fit

_LOOK_S = 0.5


def by_this_computer() -> int:
    """Jobs that have room side by side: two cores and the memory of a lab for each.

    A story alone takes about one core, and what it measures suffers where there is none to spare.
    """
    return max(1, min(_cores() // 2, stories_that_fit()))


def _cores() -> int:
    return os.cpu_count() or 1


class Lanes:
    """Runs jobs to their end, a story once its bundles are made.

    `more` is asked for another story when a lane has nothing to do, and is told what has begun. `spare`: while it says so,
    stories have lanes of their own beside these, up to one a core.
    """

    def __init__(
        self,
        jobs: Sequence[Job],
        lanes: int,
        *,
        ended: Callable[[Result], None],
        more: Callable[[Iterable[str]], Sequence[Job]] | None = None,
        builds: Builds | None = None,
        spare: Spare | None = None,
    ) -> None:
        self._tiers = [job for job in jobs if not job.is_story]
        self._stories = longest_first(job for job in jobs if job.is_story and not job.alone)
        self._alone = longest_first(job for job in jobs if job.alone)
        self._lanes, self._ended, self._more = lanes, ended, more or _none
        self._builds, self._spare = builds or Builds(()), spare
        self._running: list[Running] = []
        self.begun: list[str] = []
        self.all = [job.name for job in (*self._tiers, *self._stories, *self._alone)]

    def run(self) -> None:
        """Whatever happens, nothing of it runs on afterwards."""
        with ExitStack() as stack:
            stack.enter_context(self._builds)
            while self._start_what_may(stack) or self._running or self._builds.busy:
                time.sleep(_LOOK_S)
                self._builds.look()
                if self._spare:
                    self._spare.look()
                self._look()

    def _start_what_may(self, stack: ExitStack) -> bool:
        """Whether something was started."""
        before = len(self.begun)
        tier_runs = any(not one.job.is_story for one in self._running)
        if self._tiers and not tier_runs and self._has_room:
            self._start(self._tiers.pop(0), stack)
        while self._has_room and (job := self._next_story()):
            self._start(job, stack)
        if self._alone and not self._running and not self._builds.busy:
            self._start(self._alone.pop(0), stack)
        return len(self.begun) > before

    @property
    def _has_room(self) -> bool:
        if len(self._running) < self._lanes:
            return True
        return bool(self._spare and len(self._running) < _cores() and self._spare.is_there())

    def _next_story(self) -> Job | None:
        if any(one.job.alone for one in self._running) or (self._tiers and self._lanes == 1):
            return None
        if not self._stories:
            found = [job for job in self._more(self.begun) if job.name not in self.all]
            if not found:
                self._more = _none  # time does not come back
            self.all += [job.name for job in found]
            self._alone += [job for job in found if job.alone]
            self._stories += [job for job in found if not job.alone]
        job = next((job for job in self._stories if not self._builds.lacks(job)), None)
        if job:
            self._stories.remove(job)
        return job

    def _start(self, job: Job, stack: ExitStack) -> None:
        self.begun.append(job.name)
        if self._spare:
            self._spare.begun()
        place = f"{len(self.begun)}/{len(self.all)}"
        several = self._lanes > 1 or self._spare is not None
        beside = several and len(self.all) > 1 and not job.alone
        why = f" alone: {job.alone}" if job.alone else ""
        say(f"{place} {job.name}{why}")
        self._running.append(stack.enter_context(Running(job, place=place, beside=beside)))

    def _look(self) -> None:
        for one in list(self._running):
            result = one.ended()
            if result is None:
                continue
            self._running.remove(one)
            counts = (f"{result.count(word)} {word}" for word in ("passed", "failed", "skipped"))
            say(f"{one.place} {result.name}: {', '.join(counts)}, {result.seconds:.0f} s")
            if one.beside and not result.good:
                print(tail(one.log), flush=True)  # noqa: T201 (talks to people)
            self._ended(result)


def _none(_: Iterable[str]) -> Sequence[Job]:
    return ()


def longest_first(jobs: Iterable[Job]) -> list[Job]:
    """Those that nobody knows come first, for they may be the longest."""
    return sorted(jobs, key=lambda job: -(job.seconds or float("inf")))
