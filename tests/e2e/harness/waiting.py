"""Waiting for facts."""

from __future__ import annotations

import time
from collections.abc import Callable

# Of one story on a computer with other work, its cleaning up left out; one that takes ten minutes alone is two.
STORY_LIMIT_S = 900


def wait_for(what: str, seen: Callable[[], str], *, limit_s: float, every_s: float = 0.5) -> float:
    """Seconds until `seen` gives an empty text, which says what is still missing.

    Raises AssertionError with the last text after `limit_s`.
    """
    start = time.monotonic()
    while True:
        missing = seen()
        took = time.monotonic() - start
        if not missing:
            return took
        if took > limit_s:
            raise AssertionError(f"{what}: not within {limit_s:.0f} s; last seen: {missing[-800:]}")
        time.sleep(every_s)
