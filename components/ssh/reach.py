"""Whether SSH servers answer, asked before an update begins: no machine of them is logged in to."""

from __future__ import annotations

import os
import select
import socket
import subprocess
import tempfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from components.ssh import hop
from components.ssh.hop import Hop

_LIMIT_S = 2.0
_TRIES = 2  # a packet may get lost
_AT_ONCE = 64
_BEHIND_S = 20.0  # of a login to the bastion, and a connection from there
_BEHIND_AT_ONCE = 8  # sshd takes ten logins at a time by itself


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


def silent_behind(jump: Hop, doors: Mapping[str, tuple[str, int]]) -> frozenset[str]:
    """The same of machines behind a bastion, by this computer's SSH client; nobody without one."""
    with tempfile.TemporaryDirectory(prefix="kube-ha-") as folder:
        command = hop.client(jump, Path(folder) / "bastion")
        ask = partial(_speaks_behind, command, jump.address)
        try:
            with ThreadPoolExecutor(max_workers=_BEHIND_AT_ONCE) as pool:
                answers = dict(zip(doors, pool.map(ask, doors.values()), strict=True))
        except OSError:
            return frozenset()
    left = {name for name, speaks in answers.items() if not speaks}
    return frozenset() if len(left) == len(doors) else frozenset(left)


def _speaks_behind(command: list[str], jump: str, door: tuple[str, int]) -> bool:
    """Its server speaks first, and hears nothing; it may keep the connection open."""
    words = [*command, "-W", f"{door[0]}:{door[1]}", "--", jump]
    none, said = subprocess.DEVNULL, subprocess.PIPE
    with subprocess.Popen(words, stdin=none, stdout=said, stderr=none) as process:
        speaks = process.stdout is not None and _begins(process.stdout.fileno())
        process.kill()
    return speaks


def _begins(pipe: int) -> bool:
    """Whether what comes is the greeting of an SSH server."""
    ready, _, _ = select.select([pipe], [], [], _BEHIND_S)
    return bool(ready) and os.read(pipe, 4) == b"SSH-"
