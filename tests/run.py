"""Runs the tests: `python -m tests.run core|all|fresh|stories|free [STORY,...] [--lanes N]`.

core: unit, fuzz, plan, toolchain, artifacts, scripts, the stories that every change must pass, and a share of the others:
those that nothing has run for the longest time, one at least, more while there is time. all: ten times the
fuzz, and every story that has not passed yet on what is in the checkout now; or some stories alone, named by their files
(`test_resume_after_sigkill.py` is `resume_after_sigkill`). fresh: the same, passed before or not. stories: runs nothing,
tells when each has passed. free: only remove what labs of tests have left.
N jobs run at a time; without --lanes as many as this computer has cores and memory for, and stories beside them while it has been
idle for a third of the last half minute. Tiers run one after another, beside them stories, the longest
first; with one lane first the tiers, then the stories. Bundles of other versions and add-ons are made beside them, and the stories
that need one wait for it. A story with ALONE in its file runs at the end, with nothing beside it. What
fails does not stop the rest.
A story that takes longer than its limit (tests/e2e/harness/waiting.py) has failed. Whatever happens, lab machines of tests are
gone at the end. A skip that EXPECTED_SKIPS does not know fails the run: a lost ability must not hide behind it.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tests import evidence, measures
from tests.e2e.harness import versions
from tests.e2e.harness.lab import ROOT
from tests.ledger import RECORD, Ledger, Passed
from tests.runner import jobs, machines, report
from tests.runner.builds import Builds
from tests.runner.jobs import FUZZ, TIERS, Job
from tests.runner.lanes import Lanes, by_this_computer
from tests.runner.results import Result
from tests.runner.spare import Spare

EXAMPLES = "10000"  # of each property, by `all`
CORE = ("create_3_2", "resume_after_sigkill", "one_master_one_worker", "adopted_machines")
CORE_S = (
    18 * 60
)  # of `core` on a warm machine: what tiers and CORE leave of it goes to other stories


@dataclass(slots=True)
class Notes:
    """What has ended, and the record of stories that passed."""

    ledger: Ledger
    results: list[Result] = field(default_factory=list)

    def ended(self, result: Result) -> None:
        self.results.append(result)
        if result.name in TIERS:
            return
        if result.good:
            measured = measures.read(jobs.LOGS / "e2e" / result.name)
            self.ledger.note(result.name, seconds=result.seconds, measured=measured)
        else:
            self.ledger.forget(result.name)


def main() -> int:
    """Exit code: 0 when everything ran and passed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("kind", choices=("core", "all", "fresh", "stories", "free"))
    parser.add_argument("named", nargs="*")
    parser.add_argument("--lanes", type=int, default=0)
    given = parser.parse_args()
    ledger = Ledger(ROOT / RECORD, ROOT)
    if given.kind == "free":
        return 0 if machines.free() else 1
    if given.kind == "stories":
        report.record(ledger)
        return 0
    if given.kind != "core":
        os.environ.setdefault("KUBE_HA_FUZZ", EXAMPLES)
    named = [one for word in given.named for one in word.split(",") if one]
    unknown = [name for name in map(_bare, named) if name not in jobs.stories()]
    if unknown:
        report.say(f"no story {', '.join(unknown)}; there are: {' '.join(jobs.stories())}")
        return 2
    # A shell lets what it starts in the background ignore Ctrl-C; tests send it to programs of theirs.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # So that machines are freed when a supervisor ends the run.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    return 0 if _run(given.kind, named, given.lanes, ledger) else 1


def _run(kind: str, named: Sequence[str], lanes: int, ledger: Ledger) -> bool:
    """`lanes`: 0 where this computer decides."""
    started = time.monotonic()
    wanted = _wanted(kind, named, ledger)
    before = _passed_before(ledger, wanted) if kind == "all" and not named else {}
    wanted = [job for job in wanted if job.name not in before]
    notes = Notes(ledger)

    def more(begun: Iterable[str]) -> list[Job]:
        return next_share(ledger, begun, time.monotonic() - started) if kind == "core" else []

    there = Lanes(
        wanted,
        lanes or by_this_computer(),
        ended=notes.ended,
        more=more,
        builds=Builds(wanted),
        # What a change must pass takes the same time every time.
        spare=None if lanes or kind == "core" else Spare(),
    )
    with machines.freed():
        try:
            there.run()
        finally:
            took = time.monotonic() - started
            good = report.results(notes.results, there.all, before, seconds=took)
            evidence.write()
    return good


def _wanted(kind: str, named: Sequence[str], ledger: Ledger) -> list[Job]:
    """Tiers and stories, in the order that they are called in."""
    if named:
        return [jobs.story(_bare(name), ledger) for name in named]
    stories = [name for name in jobs.stories() if kind != "core" or name in CORE]
    tiers = TIERS if kind == "core" else (FUZZ,)
    return [*map(jobs.tier, tiers), *(jobs.story(name, ledger) for name in stories)]


def _bare(name: str) -> str:
    return name.removeprefix("test_").removesuffix(".py")


def _passed_before(ledger: Ledger, wanted: Sequence[Job]) -> dict[str, Passed]:
    """Stories that need not run again, said aloud."""
    found = {job.name: entry for job in wanted if (entry := ledger.passed(job.name))}
    if found:
        passed = f"{len(found)} of {len(wanted)} stories passed before on this very content"
        report.say(f"{passed} and are left out; FRESH=1 runs them all")
    return found


def next_share(ledger: Ledger, begun: Iterable[str], seconds: float) -> list[Job]:
    """The story that passed the longest ago; after the first such one only where it fits in what is left of the time.

    One that is not on record has to pass in `make e2e` first.
    """
    known = ledger.entries()
    ran = set(begun) - {*TIERS, *CORE}
    waiting = ledger.by_age(
        name
        for name in known
        if name in set(jobs.stories()) - {*CORE, *ran} and not _has_to_build(name, ledger)
    )
    if not waiting:
        return []
    if ran and known[waiting[0]].seconds > CORE_S - seconds:
        return []
    return [jobs.story(waiting[0], ledger)]


def _has_to_build(story: str, ledger: Ledger) -> bool:
    """Half an hour for programs of other versions: `make e2e` has the time for it."""
    return not all(map(versions.is_made, jobs.story(story, ledger).bundles))


if __name__ == "__main__":
    sys.exit(main())
