"""`command:remote:CopyToRemote`: a file, folder or text to a machine, over SFTP."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from toolchain.command import inputs as wanted
from toolchain.command.connection import connected
from toolchain.command.faults import Faults
from toolchain.resources import Difference, Operation, OperationError, Problem, as_stored, compare
from toolchain.values import ARCHIVE, ASSET, SIGNATURE, Properties, Unknown, Value, plain

_KEYS = {"connection", "remotePath", "source", "triggers"}


@dataclass(frozen=True, slots=True)
class CopyToRemote:
    """The kind of resource. A change of content or path copies again, of `triggers` replaces."""

    faults: Faults

    def check(self, inputs: Properties) -> tuple[Properties, list[Problem]]:
        """Fill in the connection's defaults, and look at the source."""
        problems = wanted.unknown_properties(inputs, _KEYS)
        problems += _source_problems(inputs.get("source"))
        if "remotePath" not in inputs:
            problems.append(Problem("remotePath", "missing required property"))
        connection, found = wanted.check_connection(inputs)
        return {**inputs, "connection": connection}, problems + found

    def ignoring(self, names: Iterable[str], inputs: Properties, state: Properties) -> Properties:
        """What the state holds in their place, as the official plugin takes it."""
        return as_stored(names, inputs, state)

    def diff(self, old: Properties, new: Properties, state: Properties) -> Difference:
        """Of a source only the hash counts, not where it lies."""
        return compare(old, new, replacing=frozenset({"triggers"}))

    def planned(self, inputs: Properties, state: Properties | None) -> Properties:
        """Outputs are the inputs."""
        return inputs

    async def create(self, operation: Operation, inputs: Properties) -> tuple[str, Properties]:
        """Copy."""
        await self._copy(operation, inputs)
        return secrets.token_hex(4), inputs

    async def update(
        self, operation: Operation, inputs: Properties, state: Properties
    ) -> Properties:
        """Copy if content or path changed; another machine behind the connection is not noticed."""
        if _identity(inputs) != _identity(state):
            await self._copy(operation, inputs)
        return inputs

    async def delete(self, operation: Operation, state: Properties) -> None:
        """Leave the copy where it is."""

    def read(self, state: Properties) -> Properties:
        """A refresh connects nowhere."""
        return state

    async def _copy(self, operation: Operation, inputs: Properties) -> None:
        from toolchain.command.transfer import transfer

        source = plain(inputs.get("source"))
        target = wanted.text(inputs, "remotePath") or ""
        if self.faults.find("fail", operation.name):
            raise OperationError(f"failed to copy to remote path {target}: made to fail")
        async with connected(wanted.connection(inputs), operation, self.faults) as machine:
            if isinstance(source, dict) and isinstance(text := source.get("text"), str):
                await transfer(machine, text.encode(), target)
            elif isinstance(source, dict):
                await transfer(machine, Path(str(source.get("path"))), target)


def _identity(properties: Properties) -> tuple[Value, Value]:
    source = plain(properties.get("source"))
    return source.get("hash") if isinstance(source, dict) else None, properties.get("remotePath")


def _source_problems(source: Value) -> list[Problem]:
    if isinstance(source, Unknown):
        return []
    if not isinstance(source, dict) or source.get(SIGNATURE) not in (ASSET, ARCHIVE):
        return [Problem("asset", "either asset or archive must be set")]
    if source[SIGNATURE] == ASSET and not (source.get("path") or "text" in source):
        return [Problem("asset", "asset must be a path-based file asset or a text asset")]
    if source[SIGNATURE] == ARCHIVE and not source.get("path"):
        return [Problem("archive", "archive must be a path to a file or directory")]
    return []
