"""Somebody on this computer who asks a Service for its pod's name, again and again, as a client outside does."""

from __future__ import annotations

import http.client
import threading
import time
from dataclasses import dataclass, field

_EVERY_S = 0.1
_LIMIT_S = 1.0


def ask(address: str, port: int) -> str:
    """Name of the pod that answered; raises OSError or http.client.HTTPException."""
    connection = http.client.HTTPConnection(address, port, timeout=_LIMIT_S)
    try:
        connection.request("GET", "/hostname", headers={"Connection": "close"})
        return connection.getresponse().read().decode()
    finally:
        connection.close()


@dataclass(slots=True)
class Caller:
    """Use as a context. Each request is a connection of its own, and has a second."""

    address: str
    port: int
    answered: list[float] = field(default_factory=list)  # when, in seconds
    failed: int = 0
    last: str = "nothing asked yet"
    _ends: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> Caller:
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        if self._thread:
            self._thread.join()

    def _run(self) -> None:
        while not self._ends.wait(_EVERY_S):
            try:
                self.last = ask(self.address, self.port)
                self.answered.append(time.monotonic())
            except (OSError, http.client.HTTPException) as error:
                self.failed += 1
                self.last = str(error) or type(error).__name__

    @property
    def longest_gap_s(self) -> float:
        """Between two answers."""
        pairs = zip(self.answered, self.answered[1:], strict=False)
        return max((later - one for one, later in pairs), default=0.0)

    def told(self) -> str:
        asked = len(self.answered) + self.failed
        return f"{self.failed} of {asked} requests failed, longest gap {self.longest_gap_s:.1f} s"
