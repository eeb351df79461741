"""What a command prints: kept for the outputs, shown while it runs, quoted when it fails."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from toolchain.resources import Operation, OperationError

Stream = Literal["stdout", "stderr"]

LOGGING: dict[str, frozenset[Stream]] = {
    "none": frozenset(),
    "stdout": frozenset({"stdout"}),
    "stderr": frozenset({"stderr"}),
    "stdoutAndStderr": frozenset({"stdout", "stderr"}),
}
"""The values of the input `logging`; without it both streams are shown."""

_LINE_LIMIT = 64 << 10


@dataclass(slots=True)
class Output:
    """Bytes of both streams, apart and together, and the line that is still being written."""

    operation: Operation
    shown: frozenset[Stream]
    _parts: dict[Stream, bytearray] = field(
        default_factory=lambda: {"stdout": bytearray(), "stderr": bytearray()}
    )
    _both: bytearray = field(default_factory=bytearray)
    _line: bytearray = field(default_factory=bytearray)

    async def add(self, stream: Stream, data: bytes) -> None:
        """Take what arrived. Raises OperationError for a line too long for the official plugin."""
        self._parts[stream] += data
        self._both += data
        if stream not in self.shown:
            return
        self._line += data
        *lines, rest = self._line.split(b"\n")
        for line in lines:
            await self.operation.status(_text(line.removesuffix(b"\r")))
        self._line = rest
        if len(rest) >= _LINE_LIMIT:
            # The official plugin hangs forever here: better a failure in the lab than a surprise
            # elsewhere.
            message = (
                f"a line of {len(rest)} bytes on {stream}: with logging on, 65535 are the limit"
            )
            raise OperationError(message)

    async def end(self) -> None:
        """Show a last line that has no newline."""
        if self._line:
            await self.operation.status(_text(self._line))
            self._line.clear()

    def text(self, stream: Stream) -> str:
        """The output property: without the last newline."""
        return _text(self._parts[stream]).removesuffix("\n")

    def failure(self, reason: str, command: str) -> OperationError:
        """The error of a command that did not succeed, with all it printed."""
        return OperationError(f"{reason}: running {quoted(command)}:\n{_text(self._both)}")


def quoted(text: str) -> str:
    """The text in double quotes, with escapes, as Go's %q prints it."""
    named = {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
    named |= {"\v": "\\v", '"': '\\"', "\\": "\\\\"}
    return '"' + "".join(named.get(char) or _escaped(char) for char in text) + '"'


def _escaped(char: str) -> str:
    if char == " " or char.isprintable():
        return char
    code = ord(char)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def _text(data: bytes | bytearray) -> str:
    return data.decode("utf-8", errors="replace")
