"""One tier or story: a pytest of its own, its log and its end."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from tests.e2e.harness import versions
from tests.e2e.harness.lab import ROOT
from tests.e2e.harness.waiting import STORY_LIMIT_S
from tests.ledger import Ledger
from tests.runner.results import Case, Result, cases

TESTS = ROOT / "tests"
STORIES = TESTS / "e2e"
LOGS = ROOT / ".local/log"

TIERS = ("unit", "fuzz", "plan", "toolchain", "artifacts", "scripts")
FUZZ = "fuzz"  # the tier that `all` runs too

_LATE_S = 240  # after its limit a story has failed, keeps its evidence and takes its machines away

# What a story says in its file when nothing may run beside it.
_ALONE = re.compile(r'^ALONE = "(.+)"$', re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What is to be run. `seconds` are those of its last pass, 0 where there was none; `alone`: why nothing may run beside it."""

    name: str
    path: Path
    seconds: float = 0
    alone: str = ""

    @property
    def is_story(self) -> bool:
        return self.path.is_file()

    @property
    def bundles(self) -> set[versions.Bundle]:
        """Beside that of set-up."""
        return versions.needed_by(self.path) if self.is_story else set()


def tier(name: str) -> Job:
    return Job(name=name, path=TESTS / name)


def story(name: str, ledger: Ledger) -> Job:
    path = STORIES / f"test_{name}.py"
    told = _ALONE.search(path.read_text()) if path.exists() else None
    entry = ledger.entries().get(name)
    return Job(
        name=name,
        path=path,
        seconds=entry.seconds if entry else 0,
        alone=told[1] if told else "",
    )


def stories() -> list[str]:
    return sorted(file.stem.removeprefix("test_") for file in STORIES.glob("test_*.py"))


class Running:
    """A job from its start. `beside` others its lines go to its log alone; else they are shown as they come."""

    def __init__(self, job: Job, *, place: str, beside: bool) -> None:
        self.job, self.place = job, place
        self._report = LOGS / "tests" / f"{job.name}.xml"
        self._report.parent.mkdir(parents=True, exist_ok=True)
        self._report.unlink(missing_ok=True)
        self.log = self._report.with_suffix(".log")
        self._started = time.monotonic()
        self._late = self._started + STORY_LIMIT_S + _LATE_S if job.is_story else None
        environment = {"PYTHONUNBUFFERED": "1"}
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [
                    *self._priority(),
                    sys.executable,
                    "-m",
                    "pytest",
                    *self._options(),
                    str(job.path),
                ],
                cwd=ROOT,
                env=os.environ | environment,
                stdin=subprocess.DEVNULL,
                stdout=log if beside else None,
                stderr=subprocess.STDOUT if beside else None,
            )
        self.beside = beside

    def _priority(self) -> list[str]:
        """Beside tiers, which take what they get, a story is hardly slower: engine and machines go first."""
        return [] if self.job.is_story else ["nice", "-n", "10"]

    def _options(self) -> list[str]:
        options = [
            "-q",
            "--no-header",
            "--junitxml",
            str(self._report),
            "-o",
            "junit_family=xunit1",
        ]
        if not self.job.is_story:
            # Most of these tests wait for processes and clocks, not for the cores of a small CI machine. Those of one file
            # stay with one process: they may share machines. In the order of tests/conftest.py.
            return [*options, "-n", "4", "--dist", "loadfile", "--no-loadscope-reorder"]
        # Stories take minutes: every engine run and every measure is a line of its own.
        options += ["-v", "--maxfail=3", "-o", "log_cli=true", "-o", "log_cli_level=INFO"]
        return [
            *options,
            "-o",
            "log_cli_format=%(asctime)s   %(message)s",
            "--log-date-format=%H:%M:%S",
        ]

    def ended(self) -> Result | None:
        """None while it runs. A story that is far too late is ended."""
        code = self._process.poll()
        hung: list[Case] = []
        if code is None:
            if self._late is None or time.monotonic() < self._late:
                return None
            code = self.end()
            words = f"did not end, {_LATE_S} s after its limit; see the log"
            hung = [Case(self.job.name, "failed", words)]
        found = (*cases(self._report), *hung)
        return Result(self.job.name, found, time.monotonic() - self._started, code)

    def end(self) -> int:
        """Interrupt pytest, and give its fixtures the time to take their machines away. Its exit code."""
        self._process.send_signal(signal.SIGINT)
        try:
            return self._process.wait(120)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self.end()
