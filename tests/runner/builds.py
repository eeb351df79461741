"""Bundles that stories need beside that of set-up, made one after another while other stories run.

`python -m tests.runner.builds LINK NAME[=VERSION] ...` makes one. Cold that takes up to half an hour on two idle cores; what
was built of one that did not come to its end stays in the cache.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Self

from tests.e2e.harness import versions
from tests.e2e.harness.lab import ROOT, LabError
from tests.e2e.harness.versions import Bundle
from tests.runner.jobs import LOGS, Job
from tests.runner.report import say, tail


class Builds:
    """Use as a context: whatever ends the run ends its builds.

    A story waits for its bundles. Of one that could not be made the reason is printed; its stories run, and ask for it
    again themselves, within their own limit.
    """

    def __init__(self, jobs: Iterable[Job]) -> None:
        self._left = sorted({bundle for job in jobs for bundle in job.bundles})
        self._running: tuple[Bundle, subprocess.Popen[bytes]] | None = None

    @property
    def busy(self) -> bool:
        return bool(self._left or self._running)

    def lacks(self, job: Job) -> bool:
        """Whether a bundle of that story is still to be made."""
        now = {self._running[0]} if self._running else set()
        return not job.bundles.isdisjoint({*self._left, *now})

    def look(self) -> None:
        """Note the end of a build, and begin the next one."""
        if self._running and self._running[1].poll() is not None:
            self._ended(*self._running)
            self._running = None
        if self._left and not self._running:
            bundle = self._left.pop(0)
            say(f"making {bundle.link}: {', '.join(bundle.also)}")
            self._running = (bundle, self._start(bundle))

    def _start(self, bundle: Bundle) -> subprocess.Popen[bytes]:
        log = _log(bundle)
        log.parent.mkdir(parents=True, exist_ok=True)
        # Stories go first; a session of its own, so that compilers end with it.
        words = ["nice", "-n", "10", *_command(bundle)]
        with log.open("wb") as out:
            return subprocess.Popen(
                words,
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )

    def _ended(self, bundle: Bundle, process: subprocess.Popen[bytes]) -> None:
        if process.returncode:
            print(tail(_log(bundle)), flush=True)  # noqa: T201 (talks to people)
        verdict = "could not be made" if process.returncode else "is made"
        say(f"{bundle.link} {verdict}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._running:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._running[1].pid, signal.SIGTERM)
            self._running[1].wait()


def _log(bundle: Bundle) -> Path:
    return LOGS / "tests" / f"{bundle.link.rpartition('/')[2]}.log"


def _command(bundle: Bundle) -> list[str]:
    return [sys.executable, "-m", "tests.runner.builds", bundle.link, *bundle.also]


def main(words: Sequence[str]) -> int:
    link, *also = words
    try:
        versions.make(Bundle(call="", also=tuple(also), link=link))
    except LabError as error:
        print(error)  # noqa: T201 (talks to people)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
