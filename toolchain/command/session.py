"""One command in one SSH session: input in, output out in order of arrival, and how it ended."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

import asyncssh

from toolchain.command.faults import Rule
from toolchain.command.output import Output, Stream

_NO_STATUS = "wait: remote command exited without exit status or exit signal"


class _Events(asyncssh.SSHClientSession[bytes]):
    """What the server sends, in a queue; None when session or connection end."""

    def __init__(self) -> None:
        self.arrived: asyncio.Queue[tuple[Stream, bytes] | None] = asyncio.Queue()
        self.reason: str | None = _NO_STATUS

    def data_received(self, data: bytes, datatype: int | None) -> None:
        stream: Stream = "stdout" if datatype is None else "stderr"
        self.arrived.put_nowait((stream, data))

    def exit_status_received(self, status: int) -> None:
        self.reason = f"Process exited with status {status}" if status else None

    def exit_signal_received(self, signal: str, core_dumped: bool, msg: str, lang: str) -> None:  # noqa: FBT001
        number = _SIGNALS.get(signal, 0)
        self.reason = f"Process exited with status {128 + number} from signal {signal}"
        self.reason += f". Reason was: {msg}" if msg else ""

    def connection_lost(self, exc: Exception | None) -> None:
        self.arrived.put_nowait(None)


# RFC 4254, section 6.10, with the numbers of Linux.
_SIGNALS = {"HUP": 1, "INT": 2, "QUIT": 3, "ILL": 4, "ABRT": 6, "FPE": 8, "KILL": 9}
_SIGNALS |= {"USR1": 10, "SEGV": 11, "USR2": 12, "PIPE": 13, "ALRM": 14, "TERM": 15}


@dataclass(frozen=True, slots=True)
class Session:
    """A command, what it reads, and the variables it sees."""

    command: str
    stdin: bytes
    environment: Mapping[str, str] = field(default_factory=dict)

    async def run(
        self, machine: asyncssh.SSHClientConnection, output: Output, drop: Rule | None
    ) -> str | None:
        """Run to the end; None for success, else why not, in the words of Go's SSH library.

        The end is that of the session: a child in the background that keeps stdout holds it open.
        """
        events = _Events()
        variables: dict[str | bytes, str | bytes] = dict(self.environment.items())
        try:
            channel, _ = await machine.create_session(
                lambda: events, self.command, env=variables, encoding=None
            )
        except asyncssh.ChannelOpenError:
            return f"ssh: command {self.command} failed"
        except asyncssh.Error:
            return _NO_STATUS
        if self.stdin:
            channel.write(self.stdin)
        channel.write_eof()
        if drop is not None:
            asyncio.get_running_loop().call_later(drop.time_s, machine.abort)
        while (event := await events.arrived.get()) is not None:
            await output.add(*event)
        await output.end()
        return events.reason
