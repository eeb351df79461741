"""Whether this computer has time left for one more story.

On two cores most stories leave a third of the time idle, and two of them side by side take hardly longer than one. One that changes
three masters under load takes all of it: two of those side by side take longer than one after the other.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

_WINDOW_S = 30
_IDLE = 0.35  # of all cores, over the whole window
_STORY_MIB = 5000  # the biggest labs; 3 masters and 2 workers use 3 GB
_REST_MIB = 3000  # of this computer, tiers and builds

Ticks = tuple[int, int]  # for whoever comes, all


class Spare:
    """Looks at how idle this computer has been; `look` is called again and again."""

    def __init__(
        self,
        *,
        ticks: Callable[[], Ticks] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ticks, self._clock = ticks or _ticks, clock
        self._seen: deque[tuple[float, Ticks]] = deque()

    def look(self) -> None:
        now = self._clock()
        self._seen.append((now, self._ticks()))
        # The newest one that is older than the window stays, so that what is left covers it.
        while len(self._seen) > 1 and self._seen[1][0] <= now - _WINDOW_S:
            self._seen.popleft()

    def begun(self) -> None:
        """A job begins: what was seen before it tells nothing any more."""
        self._seen.clear()

    def is_there(self) -> bool:
        if not self._seen or self._seen[-1][0] - self._seen[0][0] < _WINDOW_S:
            return False
        (idle, total), (idle_now, total_now) = self._seen[0][1], self._seen[-1][1]
        return idle_now - idle >= _IDLE * (total_now - total) and stories_that_fit() > 0


def stories_that_fit() -> int:
    """Beside what is in memory now."""
    memory = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    available_mib = int(memory["MemAvailable"].split()[0]) // 1024
    return (available_mib - _REST_MIB) // _STORY_MIB


def _ticks() -> Ticks:
    words = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
    _, nice, _, idle, waiting, *_ = times = [int(word) for word in words]
    # Builds and tiers are nice: they give way to a story.
    return nice + idle + waiting, sum(times)
