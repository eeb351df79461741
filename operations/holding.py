"""What `make tunnel`, `api` and `dashboard` share: a connection, until a person ends it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import IO

from components.ssh import tunnel
from operations.engine.engine import StackError

_POLL_S = 0.1
_END_S = 5  # for a command to end by itself


def until_ended(who: str, hold: Callable[[], None]) -> int:
    """Exit code: 0 when Ctrl-C or SIGTERM ends it, 1 for a StackError, which is printed."""
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        hold()
    except StackError as error:
        sys.stderr.write(f"ERROR {error}\n")
        return 1
    except KeyboardInterrupt:
        say(who, "ended")
    return 0


def say(who: str, text: str) -> None:
    """One line, with the time and the command that says it."""
    print(f"{time.strftime('%H:%M:%S')} {who:<9} {text}", flush=True)


def forwarded(command: Sequence[str], port: int, tell: Callable[[], None]) -> tuple[bool, str]:
    """Run a command that forwards a port of this computer, until it ends by itself.

    `tell` is called once something listens at the port. Returns whether it was, and the command's
    last words.
    """
    with started(command) as (process, said):
        listened = False
        while process.poll() is None:
            if not listened and tunnel.listens(port):
                listened = True
                tell()
            time.sleep(_POLL_S)
        said.seek(0)
        lines = said.read().strip().splitlines()
    return listened, lines[-1] if lines else f"exit code {process.returncode}"


@contextmanager
def started(command: Sequence[str]) -> Iterator[tuple[subprocess.Popen[bytes], IO[str]]]:
    """A command in a session of its own, until the end, and the file of all that it says."""
    with (
        tempfile.TemporaryFile("w+", errors="replace") as said,
        ending(
            subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                start_new_session=True,
            )
        ) as process,
    ):
        yield process, said


@contextmanager
def ending(process: subprocess.Popen[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    """End the process, and those that it started, at the end.

    A session of its own makes them a group: `aws` ends by itself without its plugin.
    """
    try:
        yield process
    finally:
        for how in (signal.SIGTERM, signal.SIGKILL):
            if not _in_group(process.pid, how):
                break
            end = time.monotonic() + _END_S
            while _in_group(process.pid, 0) and time.monotonic() < end:
                process.poll()
                time.sleep(0.05)


def _in_group(group: int, number: int) -> bool:
    """Send a signal (0: none) to all of a group; whether there was anybody."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return False
    return True


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
