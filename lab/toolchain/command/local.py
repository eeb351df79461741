"""`command:local:Command`: a command on this computer."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
from dataclasses import dataclass

from lab.toolchain.command import inputs as wanted
from lab.toolchain.command.faults import Faults
from lab.toolchain.command.output import LOGGING, Output, Stream
from lab.toolchain.provider import Difference, Operation, OperationError, Problem, compare
from lab.toolchain.values import UNKNOWN, Properties, plain

REPLACING = frozenset({"triggers"})

_INTERPRETER = ("/bin/sh", "-c")


@dataclass(frozen=True, slots=True)
class LocalCommand:
    """The kind of resource. Every change of an input runs `update`, or `create` where there is none."""

    faults: Faults

    def check(self, inputs: Properties) -> tuple[Properties, list[Problem]]:
        """Fill in defaults."""
        return wanted.check_local(inputs)

    def diff(self, old: Properties, new: Properties, state: Properties) -> Difference:
        """Any change updates; of `triggers` replaces."""
        return compare(old, new, replacing=REPLACING)

    def planned(self, inputs: Properties, state: Properties | None) -> Properties:
        """What a command will print is not known before it has run."""
        return {**inputs, "stdout": UNKNOWN, "stderr": UNKNOWN}

    async def create(self, operation: Operation, inputs: Properties) -> tuple[str, Properties]:
        """Run `create`."""
        printed = await self._run(operation, inputs, {}, wanted.text(inputs, "create"))
        return operation.name + secrets.token_hex(4), {**inputs, **printed}

    async def update(
        self, operation: Operation, inputs: Properties, state: Properties
    ) -> Properties:
        """Run `update` or `create`, with what the last run printed in the environment if that is wanted."""
        command = wanted.text(inputs, "update")
        if command is None:
            command = wanted.text(inputs, "create")
        printed = await self._run(operation, inputs, state, command)
        return {**inputs, **printed}

    async def delete(self, operation: Operation, state: Properties) -> None:
        """Run `delete`, with the inputs as they were saved last."""
        await self._run(operation, state, state, wanted.text(state, "delete"))

    def read(self, state: Properties) -> Properties:
        """A refresh runs nothing."""
        return state

    async def _run(
        self, operation: Operation, inputs: Properties, before: Properties, command: str | None
    ) -> Properties:
        """Run a command and give its outputs; without a command, what was printed before."""
        if command is None:
            return {stream: before.get(stream, "") for stream in ("stdout", "stderr")}
        output = Output(operation, LOGGING[wanted.text(inputs, "logging") or "stdoutAndStderr"])
        if self.faults.find("fail", operation.name):
            raise output.failure("exit status 1", command)
        try:
            process = await asyncio.create_subprocess_exec(
                *(wanted.words(inputs, "interpreter") or _INTERPRETER),
                command,
                cwd=wanted.text(inputs, "dir"),
                env=_environment(inputs, before),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
        except OSError as error:
            raise output.failure((error.strerror or str(error)).lower(), command) from None
        stdin = wanted.text(inputs, "stdin") or ""
        await _talk(process, stdin.encode(), output, operation.cancelled)
        code = await process.wait()
        if code:
            raise output.failure(_reason(code), command)
        return {"stdout": output.text("stdout"), "stderr": output.text("stderr")}


def _environment(inputs: Properties, before: Properties) -> dict[str, str]:
    """The engine's environment, the wanted variables, and what the last run printed."""
    found = {**os.environ, **wanted.texts(inputs, "environment")}
    if inputs.get("addPreviousOutputInEnv") is not False:
        for name in ("stdout", "stderr"):
            value = plain(before.get(name))
            if isinstance(value, str) and value:
                found["PULUMI_COMMAND_" + name.upper()] = value
    return found


async def _talk(
    process: asyncio.subprocess.Process, stdin: bytes, output: Output, cancelled: asyncio.Event
) -> None:
    """Feed and read until both streams end; a cancel kills the process, as the official plugin does."""
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
