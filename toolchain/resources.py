"""What a provider asks of a kind of resource, and what it gives to it.

Each operation on a resource is one call of one of the methods of Kind; the provider does the
protocol around them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import grpc.aio
from google.protobuf import empty_pb2

from toolchain.differences import Change, differences, top
from toolchain.protocol import engine_pb2
from toolchain.values import Properties

Log: TypeAlias = "grpc.aio.UnaryUnaryMultiCallable[engine_pb2.LogRequest, empty_pb2.Empty]"


class OperationError(Exception):
    """An operation on a resource failed; the text is what the user reads."""


@dataclass(frozen=True, slots=True)
class Problem:
    """An input that cannot be accepted, found before anything is done."""

    property: str
    reason: str


@dataclass(frozen=True, slots=True)
class Difference:
    """What an update would do: changed paths, and those of them that need a new resource."""

    changes: Mapping[str, Change]
    replaces: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Operation:
    """One create, update or delete under way: which resource, how to log, when to give up."""

    urn: str
    name: str
    timeout_s: float
    """Limit of the user's custom timeouts, 0 for none; officially it ends only the dialling."""
    log: Log
    cancelled: asyncio.Event
    """Set when the engine asks to cancel: a first Ctrl-C."""

    async def status(self, line: str) -> None:
        """Show a line beside the resource while it is being worked on."""
        await self._log(line, engine_pb2.INFO, ephemeral=True)

    async def warn(self, text: str) -> None:
        """Say something that stays on the screen."""
        await self._log(text, engine_pb2.WARNING, ephemeral=False)

    async def error(self, text: str) -> None:
        """Say something that stays on the screen, as an error; the operation continues."""
        await self._log(text, engine_pb2.ERROR, ephemeral=False)

    async def _log(
        self, text: str, severity: engine_pb2.LogSeverity.ValueType, *, ephemeral: bool
    ) -> None:
        request = engine_pb2.LogRequest(
            severity=severity, message=text, urn=self.urn, ephemeral=ephemeral
        )
        await self.log(request)


class Kind(Protocol):
    """One type of resource: what the provider below needs to know of it."""

    def check(self, inputs: Properties) -> tuple[Properties, list[Problem]]:
        """Inputs with defaults filled in and secrets marked, and what is wrong with them."""
        ...

    def ignoring(self, names: Iterable[str], inputs: Properties, state: Properties) -> Properties:
        """Inputs as far as the provider itself heeds `ignore_changes`, after the engine has."""
        ...

    def diff(self, old: Properties, new: Properties, state: Properties) -> Difference:
        """Compare inputs of the last success with wanted ones; `state` holds the last outputs."""
        ...

    def planned(self, inputs: Properties, state: Properties | None) -> Properties:
        """Outputs as far as a preview knows them; `state` is None for a resource still to be."""
        ...

    async def create(self, operation: Operation, inputs: Properties) -> tuple[str, Properties]:
        """Make the resource; its ID and outputs. Raises OperationError."""
        ...

    async def update(
        self, operation: Operation, inputs: Properties, state: Properties
    ) -> Properties:
        """Change the resource; its outputs. Raises OperationError."""
        ...

    async def delete(self, operation: Operation, state: Properties) -> None:
        """Remove the resource. Raises OperationError."""
        ...

    def read(self, state: Properties) -> Properties:
        """What is there at a refresh."""
        ...


def as_stored(names: Iterable[str], inputs: Properties, state: Properties) -> Properties:
    """Inputs with those that are named as the state has them among its outputs.

    Only a name as it is written counts: `*` and `["stdin"]`, which the engine understands, name no
    output.
    """
    return {**inputs, **{name: state[name] for name in names if name in state}}


def compare(old: Properties, new: Properties, *, replacing: frozenset[str]) -> Difference:
    """The usual difference: a change updates; one of an input in `replacing` replaces."""
    changes = differences(old, new)
    return Difference(changes, frozenset(path for path in changes if top(path) in replacing))
