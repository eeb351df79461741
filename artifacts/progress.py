"""Short lines on stderr that say what is being done and how long it took."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager


def say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} bundle  {text}", file=sys.stderr, flush=True)


@contextmanager
def step(name: str, doing: str) -> Iterator[None]:
    """Announce a step, then its duration; a failed one is not reported as done."""
    start = time.monotonic()
    say(f"{name}: {doing}")
    yield
    say(f"{name}: done in {time.monotonic() - start:.0f} s")
