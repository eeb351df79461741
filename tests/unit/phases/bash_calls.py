"""Which functions of a phase are reached from its main: by names in their text, as one may be handed to another."""

from __future__ import annotations

import re
from functools import cache

from stacks.phases.scripts import FOLDER, parts

_FUNCTION = re.compile(r"^([a-z_]+)\(\) [({](.*?)^[)}]", re.MULTILINE | re.DOTALL)
_ONE_LINE = re.compile(r"^([a-z_]+)\(\) \{ (.*) \}", re.MULTILINE)
_WORD = re.compile(r"[a-z_]+")


@cache
def functions(phase: str) -> dict[str, str]:
    """Text of each function by its name."""
    found: dict[str, str] = {}
    for name in parts(phase):
        text = (FOLDER / name).read_text()
        found |= {match[1]: match[2] for match in _ONE_LINE.finditer(text)}
        rest = _ONE_LINE.sub("", text)
        found |= {match[1]: match[2] for match in _FUNCTION.finditer(rest)}
    return found


@cache
def reached(phase: str) -> frozenset[str]:
    """Names of functions on the way from main."""
    known, seen, waiting = functions(phase), set[str](), ["main"]
    while waiting:
        name = waiting.pop()
        if name in known and name not in seen:
            seen.add(name)
            waiting += _WORD.findall(known[name])
    return frozenset(seen)
