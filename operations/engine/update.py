"""An update with one line a step: the engine as a child, its own text kept for the end.

The engine has a process group of its own. So Ctrl-C reaches it once, by this process, which hands
on every signal that it gets and always waits: an engine that is killed forgets what commands run.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Self, TextIO

from operations.engine.engine import Engine
from operations.engine.progress import Progress
from stacks.providers import registry

LOGS = Path(".local/log")
_PAGE = "docs/install/cloud-permissions.md, policies of an organisation"
_EVERY_S = 0.5  # how often the log of events is looked at
_LAST = 60  # lines of an engine that ended before it had anything to sum up
_HANDED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
# Where the engine's text begins that is for the end: what went wrong, then outputs and counts.
_ENDS = ("Diagnostics:", "Outputs:", "Resources:")
_CANCELS = "the engine ends what runs, in order; Ctrl-C again ends it at once, which leaves a lock"

_Handler = Callable[[int, FrameType | None], object] | int | None


def run(
    engine: Engine, words: Iterable[str], progress: Progress, *, extra: Mapping[str, str]
) -> int:
    """The engine's `up` to its end; its exit code, 128 and the signal where one ended it.

    `extra`: of its environment. Raises StackError when there is no engine here.
    """
    LOGS.mkdir(parents=True, exist_ok=True)
    kept = LOGS / f"up-{engine.stack}.log"
    kept.unlink(missing_ok=True)  # an update of this stack that runs keeps its own
    terminal = _Terminal()
    with (
        tempfile.TemporaryDirectory(prefix="kube-ha-") as folder,
        os.fdopen(os.open(kept, os.O_RDWR | os.O_CREAT, 0o600), "w+b") as text,
        _Signals() as signals,
    ):
        events = Path(folder) / "events"
        events.touch(mode=0o600)
        process = engine.start("up", *words, f"--event-log={events}", extra=extra, output=text)
        signals.to(process)
        try:
            with events.open(errors="replace") as log:
                for lines in _told(process, log, progress, signals):
                    terminal.tell(lines)
        finally:
            code = process.wait()
        text.seek(0)
        said = text.read().decode(errors="replace")
        terminal.tell(_end(said))
    if code:
        terminal.tell(_policies(said))
        terminal.tell([f"all that the engine printed: {kept}"])
    return code if code >= 0 else 128 - code


class _Terminal:
    """Where lines go; once nobody reads them any more, nowhere: the update goes its way."""

    def __init__(self) -> None:
        self._is_read = True

    def tell(self, lines: Iterable[str]) -> None:
        for line in lines:
            if self._is_read:
                try:
                    print(line, flush=True)
                except OSError:
                    self._is_read = False
                    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class _Signals:
    """Hands signals on to the engine, those too that came before it was there."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._early: list[int] = []
        self._before: dict[int, _Handler] = {}
        self.interrupts = 0

    def __enter__(self) -> Self:
        for one in _HANDED_ON:
            # What the caller ignores (nohup) stays ignored, in the engine too.
            if signal.getsignal(one) is not signal.SIG_IGN:
                self._before[one] = signal.signal(one, self._take)
        return self

    def __exit__(self, *_: object) -> None:
        for one, handler in self._before.items():
            signal.signal(one, handler)

    def to(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        for number in self._early:
            process.send_signal(number)

    def _take(self, number: int, _: FrameType | None) -> None:
        # Nothing is printed here: what was interrupted may be a print.
        self.interrupts += number == signal.SIGINT
        if self._process is None:
            self._early.append(number)
        else:
            self._process.send_signal(number)


def _told(
    process: subprocess.Popen[bytes], log: TextIO, progress: Progress, signals: _Signals
) -> Iterator[Iterable[str]]:
    """Lines about what the engine does, until it has ended."""
    part, ended, is_said = "", False, False
    while not ended:
        with suppress(subprocess.TimeoutExpired):
            process.wait(_EVERY_S)
            ended = True
        if signals.interrupts and not is_said:
            is_said = True
            yield [_CANCELS]
        *whole, part = (part + log.read()).split("\n")
        yield progress.lines(whole)
        yield progress.waiting()


def _policies(text: str) -> list[str]:
    """What to do where an organisation's policies were in the way; providers print their name."""
    found = [f"  - {line}" for line in registry.explained(text)]
    return [*found, f"  see {_PAGE}"] if found else []


def _end(text: str) -> list[str]:
    """What the engine says at its end; of one that came to none, its last lines."""
    lines = text.rstrip("\n").split("\n")
    begins = [number for number, line in enumerate(lines) if line in _ENDS]
    return lines[begins[0] :] if begins else lines[-_LAST:]
