"""Whether SSH servers answer, asked before an update begins: nothing is logged in to."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

_LIMIT_S = 2.0
_TRIES = 2  # a packet may get lost
_AT_ONCE = 64


def silent(doors: Mapping[str, tuple[str, int]]) -> frozenset[str]:
    """Names of those of (host, port) where no SSH server speaks within some seconds.

    Nobody where none of all answers: then it is this computer that does not reach them.
    """
    left = dict(doors)
    for _ in range(_TRIES):
        with ThreadPoolExecutor(max_workers=_AT_ONCE) as pool:
            answers = dict(zip(left, pool.map(_speaks, left.values()), strict=True))
        left = {name: door for name, door in left.items() if not answers[name]}
        if not left:
            break
    return frozenset() if len(left) == len(doors) else frozenset(left)


def _speaks(door: tuple[str, int]) -> bool:
    """A machine that hangs may accept a connection; its server says nothing."""
    try:
        with socket.create_connection(door, timeout=_LIMIT_S) as connection:
            connection.settimeout(_LIMIT_S)
            return connection.recv(4) == b"SSH-"
    except OSError:
        return False
