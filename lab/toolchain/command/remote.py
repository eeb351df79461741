"""`command:remote:Command`: a command on a machine, over SSH."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lab.toolchain.command import inputs as wanted
from lab.toolchain.command.connection import connected
from lab.toolchain.command.faults import Faults
from lab.toolchain.command.output import LOGGING, Output
from lab.toolchain.differences import differences
from lab.toolchain.provider import Difference, Operation, OperationError, Problem, compare
from lab.toolchain.values import UNKNOWN, Properties, plain

if TYPE_CHECKING:
    import asyncssh

REPLACING = frozenset({"triggers"})


@dataclass(frozen=True, slots=True)
class RemoteCommand:
    """The kind of resource. Every change of an input runs `update`, or `create` where there is none."""

    faults: Faults

    def check(self, inputs: Properties) -> tuple[Properties, list[Problem]]:
        """Fill in defaults; the connection becomes a secret as a whole."""
        return wanted.check_remote(inputs)

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
        """A refresh connects nowhere."""
        return state

    async def _run(
        self, operation: Operation, inputs: Properties, before: Properties, command: str | None
    ) -> Properties:
        """Run a command and give its outputs; without a command, what was printed before."""
        if command is None:
            return {stream: before.get(stream, "") for stream in ("stdout", "stderr")}
        if self.faults.find("fail", operation.name):
            message = f"Process exited with status 1: running {command!r}:\nmade to fail"
            raise OperationError(message)
        from lab.toolchain.command.session import Session  # noqa: PLC0415 (loads the SSH library)

        connection = wanted.connection(inputs)
        output = Output(operation, LOGGING[wanted.text(inputs, "logging") or "stdoutAndStderr"])
        environment = _Environment.of(inputs, before)
        async with connected(connection, operation, self.faults) as machine:
            await environment.try_out(machine, operation)
            drop = self.faults.find("drop", operation.name)
            stdin = wanted.text(inputs, "stdin") or ""
            session = Session(command, stdin.encode(), environment.accepted)
            reason = await session.run(machine, output, drop)
        if reason is not None:
            raise output.failure(reason, command)
        return {"stdout": output.text("stdout"), "stderr": output.text("stderr")}


class _Environment:
    """Variables for the remote process; the server decides which of them it takes."""

    def __init__(self, required: dict[str, str], hoped: dict[str, str]) -> None:
        self._required = required
        self._hoped = hoped
        self.accepted: dict[str, str] = {}

    @classmethod
    def of(cls, inputs: Properties, before: Properties) -> _Environment:
        hoped: dict[str, str] = {}
        if inputs.get("addPreviousOutputInEnv") is not False:
            for name in ("stdout", "stderr"):
                value = plain(before.get(name))
                if isinstance(value, str) and value:
                    hoped["PULUMI_COMMAND_" + name.upper()] = value
        return cls(wanted.texts(inputs, "environment"), hoped)

    async def try_out(self, machine: asyncssh.SSHClientConnection, operation: Operation) -> None:
        """Find out which variables arrive. Raises OperationError when a required one does not.

        The library does not tell whether the server took a variable, so a first command looks.
        """
        sent = {**self._hoped, **self._required}
        if not sent:
            return
        seen = await machine.run("env -0", env=sent, encoding=None)
        arrived = {line.partition(b"=")[0] for line in (seen.stdout or b"").split(b"\0")}
        for name, value in sent.items():
            if name.encode() in arrived:
                self.accepted[name] = value
                continue
            hint = f"Unable to set '{name}'. The SSH server must allow it by AcceptEnv."
            if name in self._required:
                await operation.error(hint)
                message = f'could not set environment variable "{name}": ssh: setenv failed'
                raise OperationError(message)
            await operation.warn(hint)
