"""Something wrong, somewhere in a config."""

from __future__ import annotations

import copy
from collections.abc import Iterator

from tests.fuzz.dice import Dice

MARK = "c2VjcmV0"  # stands for the encrypted text of a secret

_JUNK: tuple[object, ...] = (
    None, "", 0, -1, True, 1.5, 10**30, [], {}, [None], [[]], {"a": 1}, {"secure": MARK}, "x" * 300, "a\nb",
    "'; rm -rf / #", "$(id)", "%n%s", "\0", "ä", "127.0.0.1", "10.0.0.1/8", "-oProxyCommand=x", "root", "*",
)  # fmt: skip
_KEYS = (
    "zzz",
    "Count",
    "a b",
    "",
    "a.b",
    "1",
    "\n",
    "hostkey",
    "pod_cidr",
    "ä",
    '"',
    "[0]",
    "x" * 80,
)


def broken(dice: Dice, raw: dict[str, object]) -> None:
    """Replace, take out, double or add something."""
    place = dice.one_of(list(places(raw)))
    how = dice.below(5)
    junk = copy.deepcopy(dice.one_of(_JUNK))
    at, key = place
    if isinstance(at, dict):
        if how == 1:
            del at[key]
        else:
            at[key if how == 0 else dice.one_of(_KEYS)] = junk
    elif isinstance(key, int):
        if how == 1:
            del at[key]
        elif how == 0:
            at[key] = junk
        else:
            at.append(copy.deepcopy(at[key]) if how == 2 else junk)


def places(value: object) -> Iterator[tuple[dict[object, object] | list[object], object]]:
    """Every key and index of a config, with what it is in."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield value, key
            yield from places(item)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield value, index
            yield from places(item)
