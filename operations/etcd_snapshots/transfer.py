"""Files from and to a machine, through this computer's SSH client."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from pathlib import Path
from typing import IO

from operations.engine.engine import StackError
from operations.ssh import client
from operations.ssh.client import Target

_LIMIT_S = 3600


def fetch(target: Target, path: str, into: Path) -> None:
    """Bring a file that root may read; only this user may read what comes. Raises StackError."""
    into.unlink(missing_ok=True)
    descriptor = os.open(into, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as out:
        done = _run(target, f"cat {shlex.quote(path)}", stdin=subprocess.DEVNULL, stdout=out)
    if done.returncode:
        into.unlink()
        raise _failed(target, path, done)


def send(target: Target, file: Path, path: str) -> None:
    """Make root's own file of it, in a folder of its own. Raises StackError."""
    quoted, folder = shlex.quote(path), shlex.quote(str(Path(path).parent))
    words = f"umask 077 && mkdir -p {folder} && cat >{quoted}.part && mv -f {quoted}.part {quoted}"
    with file.open("rb") as stream:
        done = _run(target, words, stdin=stream, stdout=subprocess.DEVNULL)
    if done.returncode:
        raise _failed(target, path, done)


def _run(
    target: Target, words: str, *, stdin: IO[bytes] | int, stdout: IO[bytes] | int
) -> subprocess.CompletedProcess[bytes]:
    shell = f"sh -c {shlex.quote(words)}"
    command = shell if target.hop.user == "root" else f"sudo -n {shell}"
    with tempfile.TemporaryDirectory(prefix="kube-ha-") as folder:
        return subprocess.run(
            [*client.client(target, Path(folder)), f"timeout {_LIMIT_S} {command}"],
            stdin=stdin,
            stdout=stdout,
            stderr=subprocess.PIPE,
            check=False,
        )


def _failed(target: Target, path: str, done: subprocess.CompletedProcess[bytes]) -> StackError:
    said = done.stderr.decode(errors="replace").strip() or f"exit {done.returncode}"
    return StackError(
        f"{path} cannot be copied, {target.hop.address} says: {said.splitlines()[-1]}\n"
        "  do: see that the machine can be reached and has room, then run it again"
    )
