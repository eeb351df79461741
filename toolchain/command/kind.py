"""What `command:remote:Command` and `command:local:Command` share: which command runs when."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from toolchain.command import inputs as wanted
from toolchain.command.output import Output, Stream
from toolchain.resources import Difference, Operation, Problem, as_stored, compare
from toolchain.values import UNKNOWN, Properties

Checked: TypeAlias = tuple[Properties, list[Problem]]


@dataclass(frozen=True, slots=True)
class Run:
    """One run of one command of a resource."""

    operation: Operation
    command: str
    inputs: Properties
    before: Mapping[Stream, str]
    """What the run before this one printed; empty at the first."""
    output: Output


@dataclass(frozen=True, slots=True)
class Command:
    """The kind of resource. Every change of an input runs `update`, or `create` without one."""

    checked: Callable[[Properties], Checked]
    execute: Callable[[Run], Awaitable[None]]
    """Runs a command to its end; raises OperationError when that is not a success."""

    def check(self, inputs: Properties) -> Checked:
        """Fill in defaults and say what is wrong."""
        return self.checked(inputs)

    def ignoring(self, names: Iterable[str], inputs: Properties, state: Properties) -> Properties:
        """What the state holds in their place, as the official plugin takes it."""
        return as_stored(names, inputs, state)

    def diff(self, old: Properties, new: Properties, state: Properties) -> Difference:
        """Any change updates; one of `triggers` replaces."""
        return compare(old, new, replacing=frozenset({"triggers"}))

    def planned(self, inputs: Properties, state: Properties | None) -> Properties:
        """What a command will print is not known before it has run."""
        return {**inputs, "stdout": UNKNOWN, "stderr": UNKNOWN}

    async def create(self, operation: Operation, inputs: Properties) -> tuple[str, Properties]:
        """Run `create`."""
        printed = await self._run(operation, inputs, {}, "create")
        return operation.name + secrets.token_hex(4), {**inputs, **printed}

    async def update(
        self, operation: Operation, inputs: Properties, state: Properties
    ) -> Properties:
        """Run `update` if there is one, else `create`."""
        which = "create" if wanted.text(inputs, "update") is None else "update"
        return {**inputs, **await self._run(operation, inputs, state, which)}

    async def delete(self, operation: Operation, state: Properties) -> None:
        """Run `delete`, with the inputs as they were saved last, stdin among them."""
        await self._run(operation, state, state, "delete")

    def read(self, state: Properties) -> Properties:
        """A refresh runs nothing and connects nowhere."""
        return state

    async def _run(
        self, operation: Operation, inputs: Properties, state: Properties, which: str
    ) -> Properties:
        """Run a command and give its outputs; without a command, what was printed before."""
        before: dict[Stream, str] = {
            "stdout": wanted.text(state, "stdout") or "",
            "stderr": wanted.text(state, "stderr") or "",
        }
        command = wanted.text(inputs, which)
        if command is None:
            return {"stdout": before["stdout"], "stderr": before["stderr"]}
        output = Output(operation, wanted.shown(inputs))
        await self.execute(Run(operation, command, inputs, before, output))
        return {"stdout": output.text("stdout"), "stderr": output.text("stderr")}


def previous_output(run: Run) -> dict[str, str]:
    """Variables that hold what was printed before, unless the inputs say no."""
    if run.inputs.get("addPreviousOutputInEnv") is False:
        return {}
    return {"PULUMI_COMMAND_" + name.upper(): text for name, text in run.before.items() if text}
