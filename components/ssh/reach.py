"""Whether SSH servers answer, asked before an update begins: no machine of them is logged in to."""

from __future__ import annotations

import os
import select
import socket
import subprocess
import tempfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

_LIMIT_S = 2.0
_TRIES = 2  # a packet may get lost
_AT_ONCE = 64
_BEHIND_S = 20.0  # of a login to the bastion, and a connection from there
_BEHIND_AT_ONCE = 8  # sshd takes ten logins at a time by itself


@dataclass(frozen=True, slots=True, kw_only=True)
class Jump:
    """A bastion, and who logs in there."""

    host: str
    port: int
    user: str
    host_key: str
    key: str = field(repr=False)


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


def silent_behind(jump: Jump, doors: Mapping[str, tuple[str, int]]) -> frozenset[str]:
    """The same of machines behind a bastion, by this computer's SSH client; nobody without one."""
    with tempfile.TemporaryDirectory(prefix="kube-ha-") as folder:
        command = _client(jump, Path(folder))
        ask = partial(_speaks_behind, command, jump.host)
        try:
            with ThreadPoolExecutor(max_workers=_BEHIND_AT_ONCE) as pool:
                answers = dict(zip(doors, pool.map(ask, doors.values()), strict=True))
        except OSError:
            return frozenset()
    left = {name for name, speaks in answers.items() if not speaks}
    return frozenset() if len(left) == len(doors) else frozenset(left)


def _client(jump: Jump, folder: Path) -> list[str]:
    """The client's command up to where it is to connect; the key is in `folder` for its one use."""
    key, known = folder / "key", folder / "known_hosts"
    where = jump.host if jump.port == 22 else f"[{jump.host}]:{jump.port}"
    known.write_text(f"{where} {jump.host_key}\n")
    descriptor = os.open(key, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as stream:
        stream.write(jump.key.rstrip("\n") + "\n")
    options = {
        "BatchMode": "yes",
        "ConnectTimeout": "10",
        "GlobalKnownHostsFile": "/dev/null",
        "HostKeyAlgorithms": jump.host_key.split()[0],
        "IdentitiesOnly": "yes",
        "IdentityAgent": "none",
        "IdentityFile": str(key),
        "LogLevel": "QUIET",
        "StrictHostKeyChecking": "yes",
        "UpdateHostKeys": "no",
        "UserKnownHostsFile": str(known),
    }
    words = ["ssh", "-F", "none", "-T", "-p", str(jump.port), "-l", jump.user]
    return [*words, *(word for item in options.items() for word in ("-o", "=".join(item)))]


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
