"""Commands on this computer."""

from __future__ import annotations

import asyncio
import os
import signal
from dataclasses import dataclass

from toolchain.command import inputs as wanted
from toolchain.command.faults import Faults
from toolchain.command.kind import Run, previous_output
from toolchain.command.output import Output, Stream
from toolchain.resources import OperationError

_INTERPRETER = ("/bin/sh", "-c")


@dataclass(frozen=True, slots=True)
class Local:
    """Runs the commands of `command:local:Command`."""

    faults: Faults

    async def execute(self, run: Run) -> None:
        """Run a process. Raises OperationError with all it printed."""
        if self.faults.find("fail", run.operation.name):
            raise run.output.failure("exit status 1", run.command)
        variables = {**os.environ, **wanted.texts(run.inputs, "environment")}
        try:
            process = await asyncio.create_subprocess_exec(
                *(wanted.words(run.inputs, "interpreter") or _INTERPRETER),
                run.command,
                cwd=wanted.text(run.inputs, "dir"),
                env={**variables, **previous_output(run)},
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
        except OSError as error:
            reason = f"fork/exec {error.filename}: {(error.strerror or str(error)).lower()}"
            raise run.output.failure(reason, run.command) from None
        stdin = (wanted.text(run.inputs, "stdin") or "").encode()
        await _talk(process, stdin, run.output, run.operation.cancelled)
        code = await process.wait()
        if code:
            raise run.output.failure(_reason(code), run.command)


async def _talk(
    process: asyncio.subprocess.Process, stdin: bytes, output: Output, cancelled: asyncio.Event
) -> None:
    """Feed and read until both streams end; a cancel kills the process, as officially."""
    readers: tuple[tuple[Stream, asyncio.StreamReader | None], ...] = (
        ("stdout", process.stdout),
        ("stderr", process.stderr),
    )
    killer = asyncio.create_task(_kill_when(cancelled, process))
    try:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(_feed(process.stdin, stdin))
            for name, reader in readers:
                tasks.create_task(_copy(name, reader, output))
    except* OperationError as errors:
        process.kill()
        raise OperationError(str(errors.exceptions[0])) from None
    finally:
        killer.cancel()
    await output.end()


async def _kill_when(cancelled: asyncio.Event, process: asyncio.subprocess.Process) -> None:
    await cancelled.wait()
    process.kill()


async def _feed(writer: asyncio.StreamWriter | None, data: bytes) -> None:
    if writer is None:
        return
    try:
        writer.write(data)
        await writer.drain()
        writer.close()
        await writer.wait_closed()
    except (BrokenPipeError, ConnectionResetError):
        return  # a command need not read what it is given


async def _copy(name: Stream, reader: asyncio.StreamReader | None, output: Output) -> None:
    while reader is not None and (data := await reader.read(32 << 10)):
        await output.add(name, data)


def _reason(code: int) -> str:
    """The end of a process in Go's words; asyncio gives signals as negative numbers."""
    if code > 0:
        return f"exit status {code}"
    number = signal.Signals(-code)
    return f"signal: {(signal.strsignal(number) or number.name).lower()}"
