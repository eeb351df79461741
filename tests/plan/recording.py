"""A small engine for plan tests: runs the whole program, records what it registers, and keeps state between runs.

Inputs are compared and certificates issued by the lab's stand-ins of the providers, so a change here is a change
under the real engine. Commands do not run; they print nothing.
"""

from __future__ import annotations

import asyncio
import contextvars
import json
import os
import runpy
import threading
from collections.abc import Collection, Mapping
from contextlib import chdir
from dataclasses import dataclass, field, replace
from pathlib import Path
from unittest import mock

import grpc
import pulumi
import yaml
from google.protobuf import empty_pb2
from pulumi.runtime import mocks
from pulumi.runtime.proto import engine_pb2, resource_pb2

from lab.toolchain.values import Properties, Secret, Value, decode, encode, plain
from tests.plan import providers

ROOT = Path(__file__).parents[2]


class RunError(Exception):
    """The program ended with an error: refused the config, or a resource was made to fail."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """One registration, with what became of it."""

    urn: str
    name: str
    type: str
    custom: bool
    parent: str  # URN
    inputs: Properties
    outputs: Properties
    id: str
    dependencies: frozenset[str]  # URNs, of options and of inputs
    deleted_with: str  # URN
    ignores: frozenset[str]
    secret_outputs: frozenset[str]
    trigger: Value

    def text(self, key: str) -> str:
        """A text input without its secret mark; empty when it is not set."""
        value = plain(self.inputs.get(key))
        return value if isinstance(value, str) else ""

    def is_secret(self, key: str) -> bool:
        return isinstance(self.inputs.get(key), Secret)


@dataclass(frozen=True, slots=True)
class Change:
    """`+` created, `~` updated, `!` replaced, `-` deleted; with the paths of the inputs that differ."""

    mark: str
    name: str
    paths: tuple[str, ...] = ()
    before: Resource | None = None
    after: Resource | None = None

    def __str__(self) -> str:
        return f"{self.mark} {self.name}"


@dataclass(slots=True)
class Run:
    """What one run registered, by URN, and what it changed."""

    resources: dict[str, Resource] = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)

    @property
    def custom(self) -> list[Resource]:
        return [resource for resource in self.resources.values() if resource.custom]

    @property
    def commands(self) -> list[Resource]:
        return [resource for resource in self.custom if resource.type == providers.COMMAND]

    def named(self, name: str) -> Resource:
        """The custom resource of that name. Raises KeyError."""
        for resource in self.custom:
            if resource.name == name:
                return resource
        raise KeyError(name)


@dataclass(slots=True)
class Engine:
    """One stack: its resources, its outputs. `folder` stands for the checkout: what the config names lies below it."""

    folder: Path
    stack: str = "test"
    resources: dict[str, Resource] = field(default_factory=dict)
    outputs: Properties = field(default_factory=dict)

    def fork(self) -> Engine:
        """The same stack, to be led another way."""
        return Engine(self.folder, self.stack, dict(self.resources), dict(self.outputs))

    def up(self, config: Mapping[str, object], *, failing: Collection[str] = ()) -> Run:
        """Run the program and keep what it made, as far as it got.

        `config` has the keys of project kube-ha without prefix. Resources named in `failing` fail before they
        are done. Raises RunError.
        """
        monitor = _Monitor(self, frozenset(failing))
        try:
            self._execute(config, monitor)
        finally:
            self.resources |= monitor.run.resources
        gone = [urn for urn in self.resources if urn not in monitor.run.resources]
        for urn in gone:
            old = self.resources.pop(urn)
            if old.custom:
                monitor.run.changes.append(Change("-", old.name, before=old))
        self.outputs = monitor.outputs
        return monitor.run

    def _execute(self, config: Mapping[str, object], monitor: _Monitor) -> None:
        texts = {f"kube-ha:{key}": json.dumps(value) for key, value in config.items()}
        environment = {"PULUMI_CONFIG": json.dumps({**_defaults(), **texts})}
        context = contextvars.Context()
        with chdir(self.folder), mock.patch.dict(os.environ, environment):
            context.run(_run_program, monitor, self.stack)


def _run_program(monitor: _Monitor, stack: str) -> None:
    pulumi.runtime.configure(
        mocks.MockSettings(
            monitor=monitor,
            monitor_features=set(),
            engine=_Log(monitor.run.messages),
            project="kube-ha",
            stack=stack,
            dry_run=False,
            organization="organization",
            callbacks=None,
            outputs=set(),
            lock=threading.Lock(),
        )
    )

    def program() -> None:
        runpy.run_path(str(ROOT / "__main__.py"), run_name="__main__")

    try:
        with asyncio.Runner() as runner:
            runner.get_loop().set_exception_handler(lambda _loop, _context: None)
            runner.run(pulumi.runtime.run_in_stack(program))
    except SystemExit as error:
        raise RunError(str(error.code)) from None
    except _MadeToFailError as error:
        raise RunError(str(error)) from None


class _MadeToFailError(grpc.RpcError):
    """A resource operation failed."""

    def code(self) -> grpc.StatusCode:
        return grpc.StatusCode.UNKNOWN

    def details(self) -> str:
        return str(self)


class _Log:
    """The engine's side of the protocol: takes messages."""

    def __init__(self, messages: list[str]) -> None:
        self._messages = messages

    def Log(self, request: engine_pb2.LogRequest) -> None:  # noqa: N802 (the protocol's name)
        if request.severity >= engine_pb2.WARNING:
            self._messages.append(request.message)


class _Nothing(mocks.Mocks):
    """MockMonitor wants one; registrations do not reach it."""

    def call(self, args: mocks.MockCallArgs) -> tuple[dict[str, object], None]:
        raise NotImplementedError(args.token)

    def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str, dict[str, object]]:
        raise NotImplementedError(args.name)


class _Monitor(mocks.MockMonitor):
    """The monitor's side of the protocol, as the program sees it."""

    def __init__(self, engine: Engine, failing: frozenset[str]) -> None:
        super().__init__(_Nothing())
        self.run = Run()
        self.outputs: Properties = {}
        self._engine = engine
        self._failing = failing
        self._lock = threading.Lock()

    def ReadResource(  # noqa: N802
        self, request: resource_pb2.ReadResourceRequest
    ) -> resource_pb2.ReadResourceResponse:
        """Only the stack's reference to itself is read: it gives the outputs of the last run."""
        own = f"organization/kube-ha/{self._engine.stack}"
        if request.type != "pulumi:pulumi:StackReference" or request.id != own:
            raise NotImplementedError(f"{request.type} {request.id}")
        secret: list[Value] = [
            key for key, value in self._engine.outputs.items() if isinstance(value, Secret)
        ]
        found: Properties = {
            "name": own,
            "outputs": dict(self._engine.outputs),
            "secretOutputNames": secret,
        }
        return resource_pb2.ReadResourceResponse(
            urn=self.make_urn(request.parent, request.type, request.name),
            properties=encode(found),
        )

    def RegisterResource(  # noqa: N802
        self, request: resource_pb2.RegisterResourceRequest
    ) -> resource_pb2.RegisterResourceResponse:
        urn = self.make_urn(request.parent, request.type, request.name)
        if request.type == "pulumi:pulumi:Stack":
            return resource_pb2.RegisterResourceResponse(urn=urn)
        with self._lock:
            if urn in self.run.resources:
                raise AssertionError(f"{urn} is registered twice")
            old = self._engine.resources.get(urn)
        wanted = _wanted(urn, request)
        try:
            made, change = _step(old, wanted, failing=wanted.name in self._failing)
        except _MadeToFailError:
            # What the engine keeps of a failed step: the inputs of the last success, or nothing.
            if old is not None:
                self.run.resources[urn] = old
            raise
        with self._lock:
            self.run.resources[urn] = made
            if change is not None:
                self.run.changes.append(change)
        return resource_pb2.RegisterResourceResponse(
            urn=urn, id=made.id, object=encode(made.outputs)
        )

    def RegisterResourceOutputs(  # noqa: N802
        self, request: resource_pb2.RegisterResourceOutputsRequest
    ) -> empty_pb2.Empty:
        if "pulumi:pulumi:Stack::" in request.urn:
            self.outputs = decode(request.outputs)
        return empty_pb2.Empty()


def _wanted(urn: str, request: resource_pb2.RegisterResourceRequest) -> Resource:
    inputs = providers.checked(request.type, decode(request.object))
    by_property = [other for used in request.propertyDependencies.values() for other in used.urns]
    trigger = _trigger(request)
    return Resource(
        urn=urn,
        name=request.name,
        type=request.type,
        custom=request.custom,
        parent=request.parent,
        inputs=inputs,
        outputs={},
        id="",
        dependencies=frozenset((*request.dependencies, *by_property)),
        deleted_with=request.deletedWith,
        ignores=frozenset(request.ignoreChanges),
        secret_outputs=frozenset(request.additionalSecretOutputs),
        trigger=trigger,
    )


def _trigger(request: resource_pb2.RegisterResourceRequest) -> Value:
    """The replacement trigger, None when there is none."""
    if not request.HasField("replacement_trigger"):
        return None
    holder = type(request.object)()
    holder.fields["value"].CopyFrom(request.replacement_trigger)
    return decode(holder).get("value")


def _step(
    old: Resource | None, wanted: Resource, *, failing: bool
) -> tuple[Resource, Change | None]:
    """What the engine makes of one registration. Raises _MadeToFailError."""
    if not wanted.custom:
        return wanted, None
    if old is None:
        mark, paths = "+", ()
    else:
        fresh = wanted
        kept = {key: old.inputs[key] for key in wanted.ignores if key in old.inputs}
        rest = {key: value for key, value in wanted.inputs.items() if key not in wanted.ignores}
        wanted = replace(wanted, inputs={**rest, **kept})
        found = providers.difference(wanted.type, old.inputs, wanted.inputs, old.outputs)
        triggered = plain(old.trigger) != plain(wanted.trigger)
        if not found.changes and not triggered:
            return replace(wanted, outputs=old.outputs, id=old.id), None
        mark, paths = "~", tuple(found.changes)
        if found.replaces or triggered:
            # The engine ignores no change in the inputs of a replacement.
            mark, wanted = "!", fresh
    if failing:
        raise _MadeToFailError(f"{wanted.name} was made to fail")
    if old is not None and mark == "~":
        done = replace(
            wanted, outputs=providers.updated(wanted.type, wanted.inputs, old.outputs), id=old.id
        )
    else:
        made, outputs = providers.created(wanted.type, wanted.inputs)
        done = replace(wanted, outputs=outputs, id=made)
    return done, Change(mark, done.name, paths, old, done)


def _defaults() -> dict[str, str]:
    """What the engine adds from Pulumi.yaml for keys that a stack does not set."""
    project = yaml.safe_load((ROOT / "Pulumi.yaml").read_text())
    return {
        key: json.dumps(declared["default"])
        for key, declared in project["config"].items()
        if "default" in declared
    }
