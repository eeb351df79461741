"""Many machines that are one process: it answers SSH on their addresses.

What a machine does with a command is the caller's. Files that are brought to one are there for all.
The addresses have to be this computer's: `routed`.
"""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import asyncssh

NETWORK = "198.18.64.0/18"  # of those that are kept for measuring; no machine has one of them
PORT = 2222
HOST_KEYS = "host_keys"

# (number of the machine, phase, values) -> what the phase says. Raises PhaseError.
Play = Callable[[int, str, Mapping[str, str]], Awaitable[str]]


class PhaseError(RuntimeError):
    """A phase fails on such a machine; the text is what it says."""


def address(number: int) -> str:
    """Of the machine of that number, from 0 to 15000."""
    return f"198.18.{64 + number // 250}.{1 + number % 250}"


@contextmanager
def routed() -> Iterator[None]:
    """The addresses are this computer's own."""
    route = ["local", NETWORK, "dev", "lo"]
    subprocess.run(["ip", "route", "replace", *route], check=True)
    try:
        yield
    finally:
        subprocess.run(["ip", "route", "del", *route], check=True)


@dataclass(slots=True)
class Machines:
    """Machines with a host key each; FOLDER/host_keys has a line for each of them.

    Whoever has the private key of `user` (a file with the public one) may log in, by any name.
    """

    folder: Path
    user: Path
    play: Play
    _keys: list[asyncssh.SSHKey]
    _listening: dict[int, asyncssh.SSHAcceptor]

    @classmethod
    def make(cls, folder: Path, count: int, *, user: Path, play: Play) -> Machines:
        """Their keys, and the folder where their files go; none answers yet."""
        (folder / "home").mkdir()
        keys = [asyncssh.generate_private_key("ssh-ed25519") for _ in range(count)]
        lines = [key.export_public_key().decode().strip() for key in keys]
        (folder / HOST_KEYS).write_text("\n".join(lines) + "\n")
        return cls(folder, user, play, keys, {})

    async def answer(self, numbers: Sequence[int]) -> None:
        """Let exactly these answer; whoever connects to another one is refused."""
        for number in set(self._listening) - set(numbers):
            self._listening.pop(number).close()
        for number in set(numbers) - set(self._listening):
            self._listening[number] = await self._listen(number)

    async def _listen(self, number: int) -> asyncssh.SSHAcceptor:
        async def session(process: asyncssh.SSHServerProcess[str]) -> None:
            values = told(await process.stdin.read())
            words = shlex.split(process.command or "")
            runs = (after for word, after in pairwise(words) if word.endswith("/run.sh"))
            phase = next(runs, "")
            try:
                process.stdout.write(await self.play(number, phase, values) + "\n")
            except PhaseError as error:
                process.stdout.write(f"ERROR {error}\n")
                process.exit(1)
                return
            process.exit(0)

        return await asyncssh.listen(
            address(number),
            PORT,
            server_host_keys=[self._keys[number]],
            authorized_client_keys=str(self.user),
            process_factory=session,
            sftp_factory=lambda channel: _Home(channel, chroot=str(self.folder / "home").encode()),
            allow_scp=True,
        )


def told(text: str) -> dict[str, str]:
    """The values that a phase is sent (components/ssh/script.py), by name."""
    words = shlex.split(text, comments=True)
    return dict(word.split("=", 1) for word in words if "=" in word)


class _Home(asyncssh.SFTPServer):
    """One folder for all machines: the same files are brought to each."""

    def mkdir(self, path: bytes, attrs: asyncssh.SFTPAttrs) -> None:
        with suppress(FileExistsError):
            super().mkdir(path, attrs)
