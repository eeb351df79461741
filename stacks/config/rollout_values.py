"""The texts that only a rollout has: shares of a group, windows of time, names of updates.

As in values.py: each check returns the accepted text, or raises ValueError.
"""

from __future__ import annotations

import re

from stacks.config.values import short

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_DAY_MIN = 24 * 60
WEEK_MIN = 7 * _DAY_MIN
_SHARE = re.compile(r"([1-9][0-9]{0,3})(%?)")
_DAY = f"(?:{'|'.join(_DAYS)})"
UPDATE_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
PACKAGE = re.compile(r"[a-z0-9][a-z0-9+.-]{1,99}")
WINDOW = re.compile(
    rf"(?:(?P<first>{_DAY})(?:-(?P<last>{_DAY}))? )?"
    r"(?P<start>(?:[01][0-9]|2[0-3]):[0-5][0-9])-(?P<end>(?:[01][0-9]|2[0-3]):[0-5][0-9]|24:00) UTC"
)


def as_text(value: object) -> object:
    """A number as text; anything else as it is."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def share(text: str) -> str:
    """A number of machines (`3`), or a part of them (`10%`)."""
    found = _SHARE.fullmatch(text)
    if not found or (found[2] and int(found[1]) > 100):
        raise ValueError(
            f"{short(text)} is not a number of nodes; write 3, or a percentage as '10%'"
        )
    return text


def absent_share(text: str) -> str:
    """The same, and none (`0`)."""
    return text if text == "0" else share(text)


def of_share(text: str, count: int) -> int:
    """How many of `count` an accepted share is, rounded down, at least 1."""
    number = int(text.removesuffix("%"))
    return max(1, count * number // 100 if text.endswith("%") else number)


def update_word(text: str) -> str:
    """What an update of the operating system is called by: `2026-11-21`, `november`."""
    if not UPDATE_WORD.fullmatch(text):
        raise ValueError(
            f"{short(text)} is not a word; use letters, digits, '.', '_' and '-', at most 63, as "
            "'2026-11-21'"
        )
    return text


def package(text: str) -> str:
    """The name of a Debian package (Debian Policy, 5.6.1)."""
    if not PACKAGE.fullmatch(text):
        raise ValueError(f"{short(text)} is not a name of a Debian package, as 'linux-image-amd64'")
    return text


def window(text: str) -> str:
    """A time of the day, on some days of the week: `Mon-Fri 09:00-17:00 UTC`."""
    found = WINDOW.fullmatch(text)
    if not found:
        raise ValueError(
            f"{short(text)} is not a window; write 'Mon-Fri 09:00-17:00 UTC', 'Sat "
            "00:00-24:00 UTC' "
            "or '22:00-04:00 UTC', in UTC alone: clocks that change would move it"
        )
    if found["start"] == found["end"]:
        raise ValueError(f"{short(text)} is empty; for whole days write 00:00-24:00")
    return text


def minutes(windows: tuple[str, ...]) -> tuple[tuple[int, int], ...]:
    """Accepted windows as (first minute, first minute after), from Monday 00:00 UTC, sorted.

    One over midnight belongs to the day on which it starts; one over Sunday's is two.
    """
    out: list[tuple[int, int]] = []
    for text in windows:
        found = WINDOW.fullmatch(text)
        if found is None:
            raise ValueError(f"{text!r} was never accepted")
        start, end = _minute(found["start"]), _minute(found["end"])
        for day in _days(found["first"], found["last"]):
            begin = day * _DAY_MIN + start
            stop = begin + (end - start) % _DAY_MIN if end < start else begin + end - start
            out += [(begin, min(stop, WEEK_MIN))]
            out += [(0, stop - WEEK_MIN)] if stop > WEEK_MIN else []
    return tuple(sorted(out))


def _minute(text: str) -> int:
    hours, _, rest = text.partition(":")
    return int(hours) * 60 + int(rest)


def _days(first: str | None, last: str | None) -> list[int]:
    if first is None:
        return list(range(7))
    start = _DAYS.index(first)
    length = (_DAYS.index(last) - start) % 7 if last else 0
    return [(start + step) % 7 for step in range(length + 1)]
