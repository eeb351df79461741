"""Machines that do whatever they are told at once: SSH servers of this process, without a shell.

For what a program and the engine do around a cluster; what phases do is in tests/scripts and tests/e2e.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import asyncssh

_START_S = 20
# A config has no machines at loopback addresses; the name of this computer may stand for one.
_HERE = socket.gethostname()


@dataclass(slots=True)
class Obeying:
    """Machines by name; all have one user's key, each its own host key."""

    folder: Path
    names: Sequence[str]
    told: list[tuple[str, str]] = field(default_factory=list)
    """Every command, with the machine it was sent to."""
    fails: set[str] = field(default_factory=set)
    """Machines on which every command fails."""
    _host_keys: dict[str, asyncssh.SSHKey] = field(default_factory=dict)
    _ports: dict[str, int] = field(default_factory=dict)

    @property
    def key(self) -> Path:
        """The private key that may log in."""
        return self.folder / "key"

    def host(self, name: str, number: int) -> dict[str, object]:
        """As a stack file has it: another address for the other nodes than that of SSH."""
        public = self._host_keys[name].export_public_key().decode().strip()
        return {
            "name": name,
            "address": f"192.0.2.{number}",
            "sshAddress": _HERE,
            "port": self._ports[name],
            "hostKey": " ".join(public.split()[:2]),
        }

    async def serve(self, ready: threading.Event, end: asyncio.Event) -> None:
        """All answer from `ready` on until `end`."""
        user = asyncssh.generate_private_key("ssh-ed25519")
        user.write_private_key(self.key)
        user.write_public_key(self.folder / "key.pub")
        (self.folder / "home").mkdir()
        async with AsyncExitStack() as servers:
            for name in self.names:
                self._host_keys[name] = asyncssh.generate_private_key("ssh-ed25519")
                server = await servers.enter_async_context(await self._server(name))
                self._ports[name] = server.get_port()
            ready.set()
            await end.wait()

    async def _server(self, name: str) -> asyncssh.SSHAcceptor:
        async def session(process: asyncssh.SSHServerProcess[str]) -> None:
            await process.stdin.read()
            self.told.append((name, process.command or ""))
            process.exit(1 if name in self.fails else 0)

        home = str(self.folder / "home").encode()
        return await asyncssh.listen(
            socket.gethostbyname(_HERE),
            0,
            server_host_keys=[self._host_keys[name]],
            authorized_client_keys=str(self.folder / "key.pub"),
            process_factory=session,
            sftp_factory=lambda channel: _Home(channel, chroot=home),
            allow_scp=True,
        )


class _Home(asyncssh.SFTPServer):
    """One folder for all machines: the same files are brought to each."""

    def mkdir(self, path: bytes, attrs: asyncssh.SFTPAttrs) -> None:
        Path(self.map_path(path).decode()).mkdir(exist_ok=True)


@contextmanager
def obeying(folder: Path, *names: str) -> Iterator[Obeying]:
    """Machines of these names, in a thread of this process until the end."""
    made, ready = Obeying(folder, names), threading.Event()
    loop, end = asyncio.new_event_loop(), asyncio.Event()

    def run() -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(made.serve(ready, end))

    thread = threading.Thread(target=run)
    thread.start()
    try:
        assert ready.wait(_START_S), "machines that obey were not made"
        yield made
    finally:
        loop.call_soon_threadsafe(end.set)
        thread.join()
