"""The bare critical path of a cluster: the very commands of a stack, by plain ssh, in their order.

No engine, no plugin, no state: what is left is the time that machines, downloads and Kubernetes
itself take. Keys and certificates come from the stack that is replayed.
"""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import tempfile
from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

ROOT = Path(__file__).resolve().parents[2]

_SECRET = "4dabf18193072939515e22adb298388d"  # the mark of a secret in an exported state
_COMMANDS = ("command:local:Command", "command:remote:Command", "command:remote:CopyToRemote")


class ReplayError(RuntimeError):
    """A step of the bare path failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One command: where it runs, what it reads, and the steps it waits for."""

    name: str
    command: str
    stdin: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    host: str | None = None  # None: this computer
    user: str = ""
    key: str = ""
    host_key: str = ""
    after: frozenset[str] = frozenset()


class _Entry(BaseModel):
    """A part of the state of which only some is of interest here."""

    model_config = ConfigDict(frozen=True, extra="ignore", alias_generator=to_camel)


class _Connection(_Entry):
    host: str
    user: str = "root"
    private_key: str
    host_key: str


class _Inputs(_Entry):
    create: str = ""
    stdin: str = ""
    environment: dict[str, str] = {}
    remote_path: str = ""
    connection: _Connection | None = None


class _Resource(_Entry):
    urn: str
    type: str
    inputs: dict[str, object] = {}
    dependencies: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.urn.rpartition("::")[2]


class _Deployment(_Entry):
    resources: tuple[_Resource, ...]


def steps(deployment: Mapping[str, object]) -> dict[str, Step]:
    """Commands of an exported deployment, secrets in plain text, by URN."""
    listed = _Deployment.model_validate(deployment).resources
    runs = {entry.urn for entry in listed if entry.type in _COMMANDS}
    waits = _Waits({entry.urn: entry for entry in listed}, runs)
    return {entry.urn: _step(entry, waits.of(entry.urn)) for entry in listed if entry.urn in runs}


async def replay(wanted: Mapping[str, Step], *, parallel: int) -> None:
    """Run each step as soon as those it waits for are done, `parallel` at once at most.

    Raises ReplayError with the words of the first step that failed.
    """
    done = {urn: asyncio.Event() for urn in wanted}
    slots = asyncio.Semaphore(parallel)

    async def run(urn: str, step: Step, folder: Path) -> None:
        for other in step.after:
            await done[other].wait()
        async with slots:
            await _run(step, folder)
        done[urn].set()

    with tempfile.TemporaryDirectory(dir="/dev/shm") as name:  # keys stay in memory
        try:
            async with asyncio.TaskGroup() as tasks:
                for urn, step in wanted.items():
                    tasks.create_task(run(urn, step, Path(name)))
        except* ReplayError as errors:
            raise ReplayError(str(errors.exceptions[0])) from None


class _Waits:
    """Which commands a resource waits for, through resources that run nothing themselves."""

    def __init__(self, resources: Mapping[str, _Resource], runs: Set[str]) -> None:
        self._resources = resources
        self._runs = runs
        self._known: dict[str, frozenset[str]] = {}

    def of(self, urn: str) -> frozenset[str]:
        """URNs of the commands that must have ended before this resource."""
        if urn not in self._known:
            out: set[str] = set()
            for other in self._resources[urn].dependencies:
                out |= {other} if other in self._runs else self.of(other)
            self._known[urn] = frozenset(out)
        return self._known[urn]


def _step(entry: _Resource, after: frozenset[str]) -> Step:
    inputs = _Inputs.model_validate(plain(entry.inputs))
    here = inputs.connection
    folder = f"{inputs.remote_path}/scripts"
    return Step(
        name=entry.name,
        # A copy is a tar stream; the scripts get a folder of their own below the target.
        command=inputs.create or f"mkdir -p {folder} && tar -C {folder} -x",
        stdin=inputs.stdin,
        environment=inputs.environment,
        host=here.host if here else None,
        user=here.user if here else "",
        key=here.private_key if here else "",
        host_key=here.host_key if here else "",
        after=after,
    )


async def _run(step: Step, folder: Path) -> None:
    command = ["/bin/sh", "-c", step.command]
    if step.host is not None:
        command = _ssh(step, folder)
        if not step.stdin:
            scripts = shlex.quote(str(ROOT / "components/scripts"))
            command = ["/bin/sh", "-c", f"tar -C {scripts} -c . | {shlex.join(command)}"]
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=ROOT,
        env=os.environ | step.environment,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate(step.stdin.encode())
    if process.returncode:
        words = output.decode(errors="replace")[-1500:]
        raise ReplayError(f"{step.name}: exit {process.returncode}\n{words}")


def _ssh(step: Step, folder: Path) -> list[str]:
    key, known = folder / f"{step.host}.key", folder / f"{step.host}.known"
    if not known.exists():
        key.touch(mode=0o600)
        key.write_text(step.key)
        known.write_text(f"{step.host} {step.host_key}\n")
    options = ["-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes"]
    options += ["-o", f"UserKnownHostsFile={known}", "-i", str(key)]
    return ["ssh", *options, f"{step.user}@{step.host}", step.command]


def plain(value: object) -> object:
    """A value of an export with its secrets unpacked."""
    if isinstance(value, dict):
        if _SECRET in value and "plaintext" in value:  # archives carry the mark too
            unpacked: object = json.loads(value["plaintext"])
            return plain(unpacked)
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value
