"""Runs the tests tier by tier: `python -m tests.run core|all|fresh|stories|free [STORY]`.

core: unit, fuzz, plan, toolchain, artifacts, scripts, the stories that every change must pass, and a share of the others:
those that nothing has run for the longest time, one at least, more while there is time. all: ten times the
fuzz, and every story that has not passed yet on what is in the checkout now; or one story alone, named by its file
(`test_resume_after_sigkill.py` is `resume_after_sigkill`). fresh: the same, passed before or not. stories: runs nothing,
tells when each has passed. free: only remove what labs of tests have left.
A story that takes longer than its limit (tests/e2e/harness/waiting.py) has failed.
Tiers run one after another and a failed one does not stop the rest. Whatever happens, lab machines of tests are gone
at the end. A skip that EXPECTED_SKIPS does not know fails the run: a lost ability must not hide behind it.
"""

# ruff: noqa: T201 (talks to people)

from __future__ import annotations

import fnmatch
import os
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.e2e.harness import lab, versions
from tests.e2e.harness.waiting import STORY_LIMIT_S
from tests.ledger import RECORD, Ledger, Passed

ROOT = Path(__file__).resolve().parents[1]
LOGS = ROOT / ".local/log"
STORIES = ROOT / "tests/e2e"
LATE_S = 240  # after its limit a story has failed, keeps its evidence and takes its machines away

TIERS = ("unit", "fuzz", "plan", "toolchain", "artifacts", "scripts")
# The tier that `all` runs too, with so many examples of each property.
FUZZ, EXAMPLES = "fuzz", "10000"
CORE = (
    "create_3_2",
    "resume_after_sigkill",
    "one_master_one_worker",
    "adopted_machines",
)

CORE_S = 18 * 60  # of tiers and CORE on a warm machine: what they leave of it goes to other stories

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


def main() -> int:
    """Exit code: 0 when everything ran and passed."""
    kind, *named = sys.argv[1:] or [""]
    if kind == "free":
        return 0 if _free_labs() else 1
    ledger = Ledger(ROOT / RECORD, ROOT)
    if kind == "stories":
        _report_stories(ledger)
        return 0
    if kind not in ("core", "all", "fresh") or len(named) > 1:
        print(__doc__)
        return 2
    if kind != "core":
        os.environ.setdefault("KUBE_HA_FUZZ", EXAMPLES)
    wanted = _wanted(kind, named)
    unknown = [name for name, path in wanted if not path.exists()]
    if unknown:
        print(f"no story {', '.join(unknown)}; there are: {' '.join(_stories())}")
        return 2
    # A shell lets what it starts in the background ignore Ctrl-C; tests send it to programs of theirs.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # So that machines are freed when a supervisor ends the run.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    before = _passed_before(ledger, wanted) if kind == "all" and not named else {}
    wanted = [(name, path) for name, path in wanted if name not in before]
    results: list[Result] = []
    _free_labs()
    try:
        while len(results) < len(wanted):
            name, path = wanted[len(results)]
            result = _run(name, path, place=f"{len(results) + 1}/{len(wanted)}")
            results.append(result)
            _note(ledger, result)
            if kind == "core" and len(results) == len(wanted):
                wanted += next_share(ledger, results)
    finally:
        _free_labs()
        good = _report(results, [name for name, _ in wanted], before)
    return 0 if good else 1


def _passed_before(ledger: Ledger, wanted: Sequence[tuple[str, Path]]) -> dict[str, Passed]:
    """Stories that need not run again, said aloud."""
    found = {name: entry for name, _ in wanted if (entry := ledger.passed(name))}
    if found:
        passed = f"{len(found)} of {len(wanted)} stories passed before on this very content"
        _say(f"{passed} and are left out; FRESH=1 runs them all")
    return found


def next_share(ledger: Ledger, results: Sequence[Result]) -> list[tuple[str, Path]]:
    """The story that passed the longest ago; after the first such one only where it fits in what is left of the time.

    One that is not on record has to pass in `make e2e` first.
    """
    known = ledger.entries()
    ran = {result.name for result in results} - {*TIERS, *CORE}
    waiting = ledger.by_age(
        name
        for name in known
        if name in set(_stories()) - {*CORE, *ran} and not _has_to_build(name)
    )
    if not waiting:
        return []
    if ran and known[waiting[0]].seconds > CORE_S - sum(result.seconds for result in results):
        return []
    return [(waiting[0], STORIES / f"test_{waiting[0]}.py")]


def _has_to_build(story: str) -> bool:
    """Half an hour for programs of other versions: `make e2e` has the time for it."""
    return versions.needed_by(STORIES / f"test_{story}.py") and not versions.is_made()


def _note(ledger: Ledger, result: Result) -> None:
    if result.name in TIERS:
        return
    if result.good:
        ledger.note(result.name, seconds=result.seconds)
    else:
        ledger.forget(result.name)


def _wanted(kind: str, named: Sequence[str]) -> list[tuple[str, Path]]:
    """Names and paths of tiers and stories, in the order they run."""
    tiers = [(tier, ROOT / "tests" / tier) for tier in TIERS]
    stories = [name for name in CORE if (STORIES / f"test_{name}.py").exists()]
    if kind != "core":
        stories += [name for name in _stories() if name not in CORE]
        tiers = [(FUZZ, ROOT / "tests" / FUZZ)]
    if named:
        tiers, stories = [], [named[0].removeprefix("test_").removesuffix(".py")]
    return tiers + [(story, STORIES / f"test_{story}.py") for story in stories]


def _stories() -> list[str]:
    return sorted(file.stem.removeprefix("test_") for file in STORIES.glob("test_*.py"))


def _run(name: str, path: Path, *, place: str) -> Result:
    """One pytest for one tier or story, its lines shown as they come."""
    _say(f"{place} {name}")
    report = LOGS / "tests" / f"{name}.xml"
    report.parent.mkdir(parents=True, exist_ok=True)
    report.unlink(missing_ok=True)
    if path.is_file() and versions.needed_by(path):
        versions.make()  # set-up: it does not count against the limit of the story
    options = ["-q", "--no-header", "--junitxml", str(report), "-o", "junit_family=xunit1"]
    if name in TIERS:
        # Most of these tests wait for processes and clocks, not for the cores of a small CI machine. Those of one file
        # stay with one process: they may share machines.
        # In the order of tests/conftest.py.
        options += ["-n", "4", "--dist", "loadfile", "--no-loadscope-reorder"]
    else:
        # Stories take minutes: every engine run and every measure is a line of its own.
        options += ["-v", "--maxfail=3", "-o", "log_cli=true", "-o", "log_cli_level=INFO"]
        options += ["-o", "log_cli_format=%(asctime)s   %(message)s", "--log-date-format=%H:%M:%S"]
    started = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest", *options, str(path)],
        cwd=ROOT,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
        stdin=subprocess.DEVNULL,
    )
    hung: list[Case] = []
    try:
        code = process.wait(None if name in TIERS else STORY_LIMIT_S + LATE_S)
    except subprocess.TimeoutExpired:
        code = _end(process)
        hung = [Case(name, "failed", f"did not end, {LATE_S} s after its limit; see the log")]
    except BaseException:
        _end(process)
        raise
    result = Result(name, (*_cases(report), *hung), time.monotonic() - started, code)
    counts = ", ".join(f"{result.count(word)} {word}" for word in ("passed", "failed", "skipped"))
    _say(f"{place} {name}: {counts}, {result.seconds:.0f} s")
    return result


def _end(process: subprocess.Popen[bytes]) -> int:
    """Interrupt pytest, and give its fixtures the time to take their machines away. Its exit code."""
    process.send_signal(signal.SIGINT)
    try:
        return process.wait(120)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


def _cases(report: Path) -> Iterator[Case]:
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


def _report(results: Sequence[Result], wanted: Sequence[str], before: Mapping[str, Passed]) -> bool:
    """Say what ran, how it ended and how long it took; whether all of it is good."""
    print("\nWhat ran:")
    for result in results:
        verdict = "ok" if result.good else "FAILED"
        if not result.cases:
            verdict = f"FAILED: no test ran (pytest exit {result.code})"
        counts = f"{result.count('passed')} passed, {result.count('failed')} failed"
        print(f"  {result.name:<28} {result.seconds:6.0f} s  {counts:<24} {verdict}")
    for name in wanted[len(results) :]:
        print(f"  {name:<28} did not run")
    for name, entry in before.items():
        print(f"  {name:<28} {entry.seconds:6.0f} s  passed {entry.at:<21} ok, left out")
    _report_details(results)
    _report_measures([result.name for result in results])
    totals = {
        word: sum(result.count(word) for result in results)
        for word in ("passed", "failed", "skipped")
    }
    seconds = sum(result.seconds for result in results)
    print(f"\n{len(results)} of {len(wanted)} tiers and stories in {seconds / 60:.1f} min")
    if before:
        print(f"{len(before)} stories passed before on this content")
    print(", ".join(f"{count} {word}" for word, count in totals.items()), flush=True)
    return len(results) == len(wanted) and all(result.good for result in results)


def _report_details(results: Sequence[Result]) -> None:
    """Failed and skipped tests by name."""
    for result in results:
        for case in result.cases:
            if case.outcome == "failed":
                print(f"  failed   {case.name}: {case.words}")
            elif case.outcome == "skipped":
                mark = "skipped, NOT EXPECTED" if case in result.unexpected else "skipped"
                print(f"  {mark}  {case.name}: {case.words}")


def _report_measures(names: Sequence[str]) -> None:
    """Numbers that the stories of this run wrote down."""
    for name in names:
        file = LOGS / "e2e" / name / "measured.txt"
        if name not in TIERS and file.exists():
            for line in file.read_text().splitlines():
                print(f"  measured {name}: {line}")


def _report_stories(ledger: Ledger) -> None:
    """When each story passed last and on which commit, the longest ago first."""
    entries = ledger.entries()
    for name in ledger.by_age(_stories()):
        if name not in entries:
            print(f"  {name:<34} no pass on record")
            continue
        entry = entries[name]
        now = "  on this very content" if entry.content == ledger.content(name) else ""
        print(f"  {name:<34} {entry.at}  {entry.commit:<11} {entry.seconds:6.0f} s{now}")


def _free_labs() -> bool:
    """Remove what labs of tests left, and no other lab; and config files of test stacks. Whether all is gone."""
    good = True
    try:
        for name in lab.of_tests():
            _say(f"freeing lab {name}")
            lab.free(name)
    except lab.LabError as error:
        print(f"labs of tests could not be looked up or freed: {error}", file=sys.stderr)
        good = False
    for file in ROOT.glob(f"Pulumi.{lab.PREFIX}*.yaml"):
        file.unlink()
    return good


def _say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} tests   {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
