"""Text that goes to a phase on a node.

Quoted values in shell syntax. Pure.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping

from stacks.phases.scripts import STDIN_LIMIT


def render(values: Mapping[str, str]) -> str:
    """Assignments in shell syntax, in the order given, and a last line that proves it is all.

    Raises ValueError for a name that is not a shell variable, and for text over STDIN_LIMIT.
    """
    for name in values:
        if not re.fullmatch(r"[A-Z][A-Z0-9_]*", name):
            msg = f"{name!r} is not a name of a value"
            raise ValueError(msg)
    text = "".join(f"{name}={shlex.quote(value)}\n" for name, value in values.items()) + "# end\n"
    size = len(text.encode())
    if size > STDIN_LIMIT:
        biggest = max(values, key=lambda name: len(values[name]))
        msg = f"{size} bytes of values, {STDIN_LIMIT} are allowed; the biggest is {biggest}"
        raise ValueError(msg)
    return text
