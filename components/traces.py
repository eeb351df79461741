"""What the SDK tells the engine of the program, and nobody needs."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from pulumi import Resource, log


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


def without_debug() -> None:
    """From here on the SDK's own debug messages are not sent.

    For each input and output of a resource it tells the engine one, and waits until that has it:
    some thirty a resource. The engine drops them unless it was called with `--debug`, and does not
    tell the program. Whoever wants them sets KUBE_HA_DEBUG, too.
    """
    if not os.environ.get("KUBE_HA_DEBUG"):
        log.debug = _unsaid


def _unsaid(
    msg: str,
    resource: Resource | None = None,
    stream_id: int | None = None,
    ephemeral: bool | None = None,  # noqa: FBT001 (as the SDK has it)
) -> None:
    """In place of pulumi.log.debug."""
