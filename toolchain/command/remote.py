"""Commands on a machine, over SSH."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolchain.command import inputs as wanted
from toolchain.command.connection import connected
from toolchain.command.faults import Faults
from toolchain.command.kind import Run, previous_output
from toolchain.resources import OperationError

if TYPE_CHECKING:
    import asyncssh


@dataclass(frozen=True, slots=True)
class Remote:
    """Runs the commands of `command:remote:Command`."""

    faults: Faults

    async def execute(self, run: Run) -> None:
        """Connect, run, disconnect. Raises OperationError with all the command printed."""
        # The SSH library takes 0.3 s to load, and most runs of the engine connect nowhere.
        from toolchain.command.session import Session

        name = run.operation.name
        if self.faults.find("fail", name):
            raise run.output.failure("Process exited with status 1", run.command)
        where = wanted.connection(run.inputs)
        async with connected(where, run.operation, self.faults) as machine:
            variables = await _accepted_variables(machine, run)
            drop = self.faults.find("drop", name)
            stdin = (wanted.text(run.inputs, "stdin") or "").encode()
            session = Session(run.command, stdin, variables)
            reason = await session.run(machine, run.output, drop)
        if reason is not None:
            raise run.output.failure(reason, run.command)


async def _accepted_variables(machine: asyncssh.SSHClientConnection, run: Run) -> dict[str, str]:
    """Variables the server passes on. Raises OperationError when it refuses one of `environment`.

    The library does not tell whether a variable was taken, so a first command looks.
    """
    required, hoped = wanted.texts(run.inputs, "environment"), previous_output(run)
    sent = {**hoped, **required}
    if not sent:
        return {}
    looked = await machine.run("env -0", env=dict(sent.items()), encoding=None)
    printed = looked.stdout if isinstance(looked.stdout, bytes) else b""
    arrived = {line.partition(b"=")[0].decode(errors="replace") for line in printed.split(b"\0")}
    for name in sent.keys() - arrived:
        hint = (
            f"Unable to set '{name}'. This only works if the SSH server accepts the variable "
            f"(AcceptEnv); or write it into the command: '{name}=value command'."
        )
        if name in required:
            await run.operation.error(hint)
            raise OperationError(f'could not set environment variable "{name}": ssh: setenv failed')
        await run.operation.warn(hint)
    return {name: value for name, value in sent.items() if name in arrived}
