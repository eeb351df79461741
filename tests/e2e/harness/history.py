"""What a client that counts has felt, from its own lines: answers, what got lost, what went back."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

_ANSWERS = ("200", "201", "409")


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One line of tests/e2e/harness/clients/count.sh."""

    operation: int
    kind: Literal["read", "write"]
    start_ms: int  # of the epoch, as `end_ms`
    end_ms: int
    status: str  # of HTTP; 000: no answer
    base: int | None  # write: the number that was to be there
    number: int | None  # read or written
    door: str

    @property
    def answered(self) -> bool:
        return self.status in _ANSWERS

    @property
    def good(self) -> bool:
        """A number was read, or a write was acknowledged."""
        return self.status in ("200", "201")


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What one client felt."""

    requests: int
    failed: int  # no answer at the first attempt
    failed_twice: int  # nor at the second, at the next door
    lost: int  # acknowledged writes that are not there any more
    stale: int  # reads of less than what had been read or acknowledged before they began
    reads_gap_ms: int  # longest time between two good answers
    writes_gap_ms: int

    @property
    def longest_gap_ms(self) -> int:
        return max(self.reads_gap_ms, self.writes_gap_ms)

    def __str__(self) -> str:
        return (
            f"{self.failed} of {self.requests} requests failed, {self.failed_twice} after a retry too, "
            f"{self.lost} acknowledged writes lost, {self.stale} stale reads, longest gap of reads "
            f"{self.reads_gap_ms} ms, of writes {self.writes_gap_ms} ms"
        )


def attempts(lines: Iterable[str]) -> list[Attempt]:
    """Lines in their order; one that was cut off is left out."""
    out = []
    for line in lines:
        words = line.split()
        if len(words) != 8 or words[1] not in ("read", "write"):
            continue
        out.append(
            Attempt(
                operation=int(words[0]),
                kind="read" if words[1] == "read" else "write",
                start_ms=int(words[2]),
                end_ms=int(words[3]),
                status=words[4],
                base=_number(words[5]),
                number=_number(words[6]),
                door=words[7],
            )
        )
    return out


def _number(word: str) -> int | None:
    return None if word == "-" else int(word)


def seen(history: Sequence[Attempt]) -> Seen:
    """Judge the history of one client, which makes one request after another."""
    operations = [list(group) for _, group in itertools.groupby(history, lambda one: one.operation)]
    lost, stale = _missing(history)
    return Seen(
        requests=len(operations),
        failed=sum(not tried[0].answered for tried in operations),
        failed_twice=sum(not any(one.answered for one in tried) for tried in operations),
        lost=lost,
        stale=stale,
        reads_gap_ms=_gap(history, "read"),
        writes_gap_ms=_gap(history, "write"),
    )


def _missing(history: Sequence[Attempt]) -> tuple[int, int]:
    """Acknowledged writes that vanished, and reads that went back."""
    acknowledged: list[int] = []
    not_there: list[int] = []  # of these, by the last read
    known = lost = stale = 0
    for one in history:
        if not one.good or one.number is None:
            continue
        if one.kind == "read":
            stale += one.number < known
            not_there = [number for number in acknowledged if number > one.number]
        else:
            # Done on top of a number that an acknowledged write had replaced: that one is gone.
            base = one.base or 0
            lost += sum(number > base for number in acknowledged)
            acknowledged = [number for number in acknowledged if number <= base] + [one.number]
        known = max(known, one.number)
    return lost + len(not_there), stale


def _gap(history: Sequence[Attempt], kind: str) -> int:
    """Longest time between two good answers; the wait of the first and the last request counts too."""
    own = [one for one in history if one.kind == kind]
    if not own:
        return 0
    ends = [own[0].start_ms, *(one.end_ms for one in own if one.good), own[-1].end_ms]
    return max(later - earlier for earlier, later in itertools.pairwise(ends))
