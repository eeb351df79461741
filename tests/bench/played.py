"""Many machines that are one process: it answers SSH on their addresses, and plays what is behind.

    python -m tests.bench.played FOLDER MACHINES

A machine reads all that a command is told and says that it succeeded; files that are brought to it
are in FOLDER, one copy for all. Nothing is run: there is no Kubernetes. Whoever has FOLDER/key may
log in. Each command adds a line to FOLDER/commands; FOLDER/host_keys has a line for each machine.
The addresses have to be this computer's: `ip route add local NETWORK dev lo`.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import asyncssh

NETWORK = "198.18.64.0/18"  # of those that are kept for measuring; no machine has one of them
PORT = 2222
COMMANDS = "commands"
HOST_KEYS = "host_keys"
READY = "ready"


def address(number: int) -> str:
    """Of the machine of that number, from 0 to 15000."""
    return f"198.18.{64 + number // 250}.{1 + number % 250}"


class _Home(asyncssh.SFTPServer):
    """One folder for all machines: the same files are brought to each."""

    def mkdir(self, path: bytes, attrs: asyncssh.SFTPAttrs) -> None:
        with suppress(FileExistsError):
            super().mkdir(path, attrs)


def main(arguments: Sequence[str]) -> None:
    """Serve until it is ended. FOLDER/ready is there when all machines answer."""
    asyncio.run(_serve(Path(arguments[0]), int(arguments[1])))


async def _serve(folder: Path, machines: int) -> None:
    home = folder / "home"
    home.mkdir()
    keys = [asyncssh.generate_private_key("ssh-ed25519") for _ in range(machines)]
    lines = [key.export_public_key().decode().strip() for key in keys]
    (folder / HOST_KEYS).write_text("\n".join(lines) + "\n")
    with (folder / COMMANDS).open("a", buffering=1) as log:

        async def play(session: asyncssh.SSHServerProcess[str]) -> None:
            await session.stdin.read()
            log.write(f"{session.command}\n")
            session.stdout.write("done, changes=1\n")
            session.exit(0)

        for number, key in enumerate(keys):
            await asyncssh.listen(
                address(number),
                PORT,
                server_host_keys=[key],
                authorized_client_keys=str(folder / "key.pub"),
                process_factory=play,
                sftp_factory=lambda channel: _Home(channel, chroot=str(home).encode()),
                allow_scp=True,
            )
        (folder / READY).touch()
        await asyncio.Event().wait()


if __name__ == "__main__":
    main(sys.argv[1:])
