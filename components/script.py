"""Text that goes to a phase on a node.

Quoted values in shell syntax. Pure.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping

from stacks.check_sizes import STDIN_LIMIT


def render(values: Mapping[str, str]) -> str:
    """Assignments in shell syntax, in the order given, and a last line that proves it is all.

    Raises ValueError for a name that is no shell variable, and for text over STDIN_LIMIT.
    """
    for name in values:
        if not re.fullmatch(r"[A-Z][A-Z0-9_]*", name):
            msg = f"{name!r} is no name of a value"
            raise ValueError(msg)
    text = "".join(f"{name}={shlex.quote(value)}\n" for name, value in values.items()) + "# end\n"
    size = len(text.encode())
    if size > STDIN_LIMIT:
        biggest = max(values, key=lambda name: len(values[name]))
        msg = f"{size} bytes of values, {STDIN_LIMIT} are allowed; the biggest is {biggest}"
        raise ValueError(msg)
    return text


def ranges(names: tuple[str, ...]) -> str:
    """Names in the form that nodes.sh expands.

    `worker-[1-998],spare-[3-3],db`, so that a thousand take few bytes.
    """
    numbered: dict[str, list[int]] = {}
    plain: list[str] = []
    for name in names:
        match = re.fullmatch(r"(.*?)(0|[1-9][0-9]*)", name)
        if match:
            numbered.setdefault(match[1], []).append(int(match[2]))
        else:
            plain.append(name)
    parts = [
        f"{prefix}[{low}-{high}]"
        for prefix in sorted(numbered)
        for low, high in _runs(sorted(numbered[prefix]))
    ]
    return ",".join([*parts, *sorted(plain)])


def _runs(numbers: list[int]) -> list[tuple[int, int]]:
    runs: list[tuple[int, int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
    return runs
