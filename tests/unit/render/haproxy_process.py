"""What tests of a running HAProxy share: a port, a config without what only root may do, clients that never rest."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterable
from http.client import HTTPException

import pytest

_ROOT_ONLY = ("  user ", "  group ", "  chroot ", "  stats socket ")


def free_port() -> int:
    """A port of 127.0.0.1 where nobody listens now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def until_open(port: int) -> None:
    """Fails the test when nobody listens there after 10 s."""
    end = time.monotonic() + 10
    while time.monotonic() < end:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    pytest.fail(f"HAProxy does not listen on 127.0.0.1:{port} after 10 s")


def for_anybody(config: str) -> str:
    """The config without the lines that HAProxy takes from root alone."""
    return "".join(s for s in config.splitlines(keepends=True) if not s.startswith(_ROOT_ONLY))


class Clients:
    """Threads that ask, one question after another, until the block ends.

    Each question raises OSError or HTTPException where it fails.
    """

    def __init__(self, questions: Iterable[Callable[[], object]]) -> None:
        self._stop, self._lock = threading.Event(), threading.Lock()
        self.answers = 0
        self.failures: list[str] = []
        self._threads = [
            threading.Thread(target=self._run, args=(ask,), daemon=True) for ask in questions
        ]

    def __enter__(self) -> Clients:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(30)

    def wait_for(self, more: int) -> None:
        """Until there are so many answers more; fails the test after 60 s."""
        wanted, end = self.answers + more, time.monotonic() + 60
        while self.answers < wanted:
            assert time.monotonic() < end, f"no answers; failures: {self.failures[:3]}"
            time.sleep(0.02)

    def _run(self, ask: Callable[[], object]) -> None:
        while not self._stop.is_set():
            try:
                ask()
            except (OSError, HTTPException) as error:
                with self._lock:
                    self.failures.append(repr(error))
            else:
                with self._lock:
                    self.answers += 1
