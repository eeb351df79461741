"""What the engine keeps of where in the program a resource was made."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_traces() -> Iterator[None]:
    """Resources made in here are sent without the stack of the program.

    The SDK sends it with each of them, and the engine keeps it: 1.6 KB that say the same of every
    step, 5 KB a worker. The SDK has no setting for it, but takes as many frames as Python's own
    limit says. With one it finds no place in the program and sends none. An exception that leaves
    this is shown whole.
    """
    before = getattr(sys, "tracebacklimit", None)
    sys.tracebacklimit = 1
    try:
        yield
    finally:
        if before is None:
            del sys.tracebacklimit
        else:
            sys.tracebacklimit = before
