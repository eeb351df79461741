"""A plugin as a process, driven over its protocol as the engine would, with the engine's log kept."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import grpc
from google.protobuf import empty_pb2, struct_pb2
from pulumi.runtime.proto import engine_pb2, engine_pb2_grpc, provider_pb2, provider_pb2_grpc

from toolchain import standins
from toolchain.values import Properties, Value, decode, encode

_CALL_S = 60


class CallError(Exception):
    """The plugin refused a call; the text is what the engine would show."""


@dataclass(slots=True)
class EngineLog(engine_pb2_grpc.EngineServicer):
    """The part of an engine that a plugin talks to."""

    lines: list[str] = field(default_factory=list)

    def Log(  # noqa: N802 (the protocol's name)
        self, request: engine_pb2.LogRequest, context: grpc.ServicerContext
    ) -> empty_pb2.Empty:
        self.lines.append(request.message)
        return empty_pb2.Empty()


@dataclass(frozen=True, slots=True)
class Made:
    """A resource that exists: as the engine would keep it in its state."""

    kind: str
    name: str
    identity: str
    inputs: Properties
    state: Properties


@dataclass(slots=True)
class Plugin:
    """A stand-in under test."""

    name: str
    folder: Path
    environment: Mapping[str, str]
    log: EngineLog = field(default_factory=EngineLog)

    def __enter__(self) -> Plugin:
        self._engine = grpc.server(ThreadPoolExecutor(max_workers=4))
        engine_pb2_grpc.add_EngineServicer_to_server(self.log, self._engine)
        port = self._engine.add_insecure_port("127.0.0.1:0")
        self._engine.start()
        program = self.folder / f"pulumi-resource-{self.name}"
        statement = f"from toolchain.{self.name}.plugin import main; main()"
        standins.put_script(program, standins.launcher(statement))
        words = [str(program), f"127.0.0.1:{port}"]
        with self._errors.open("wb") as errors:
            self.process = subprocess.Popen(
                words, stdout=subprocess.PIPE, stderr=errors, env=dict(self.environment)
            )
        self._channel = grpc.insecure_channel(f"127.0.0.1:{self._port(self.process.stdout)}")
        self.stub = provider_pb2_grpc.ResourceProviderStub(self._channel)
        return self

    def __exit__(self, *_: object) -> None:
        self._channel.close()
        self.process.terminate()
        self.process.wait(10)
        if self.process.stdout is not None:
            self.process.stdout.close()
        self._engine.stop(None).wait()

    _engine: grpc.Server = field(init=False)
    _channel: grpc.Channel = field(init=False)
    stub: provider_pb2_grpc.ResourceProviderStub = field(init=False)
    process: subprocess.Popen[bytes] = field(init=False)

    @property
    def _errors(self) -> Path:
        return self.folder / f"{self.name}.stderr"

    @property
    def errors(self) -> str:
        """What the plugin has written to its own stderr."""
        return self._errors.read_text(encoding="utf-8")

    def check(self, kind: str, name: str, inputs: Mapping[str, object]) -> Properties:
        """Inputs as they go into the state. Raises CallError with all problems."""
        request = provider_pb2.CheckRequest(urn=_urn(kind, name), news=_message(inputs))
        answer = self.stub.Check(request, timeout=_CALL_S)
        if answer.failures:
            told = (f"{failure.property}: {failure.reason}" for failure in answer.failures)
            raise CallError("\n".join(told))
        return decode(answer.inputs)

    def create(self, kind: str, name: str, **inputs: object) -> Made:
        """Check and create. Raises CallError."""
        checked = self.check(kind, name, inputs)
        identity, state = self._create(kind, name, checked, preview=False)
        return Made(kind, name, identity, checked, state)

    def planned(self, kind: str, name: str, **inputs: object) -> Properties:
        """Check, and create as a preview does."""
        checked = self.check(kind, name, inputs)
        return self._create(kind, name, checked, preview=True)[1]

    def _create(
        self, kind: str, name: str, checked: Properties, *, preview: bool
    ) -> tuple[str, Properties]:
        request = provider_pb2.CreateRequest(
            urn=_urn(kind, name), properties=encode(checked), preview=preview
        )
        try:
            answer = self.stub.Create(request, timeout=_CALL_S)
        except grpc.RpcError as error:
            raise CallError(_details(error)) from None
        return answer.id, decode(answer.properties)

    def diff(self, made: Made, **inputs: object) -> dict[str, str]:
        """Changed paths and what an update would do with each: `update`, `add_replace` ..."""
        return self.diff_ignoring(made, (), inputs)

    def diff_ignoring(
        self, made: Made, ignored: Sequence[str], inputs: Mapping[str, object]
    ) -> dict[str, str]:
        """The same with `ignore_changes`, which the engine tells the plugin as well."""
        checked = self.check(made.kind, made.name, inputs)
        request = provider_pb2.DiffRequest(
            id=made.identity,
            urn=_urn(made.kind, made.name),
            old_inputs=encode(made.inputs),
            olds=encode(made.state),
            news=encode(checked),
            ignoreChanges=ignored,
        )
        answer = self.stub.Diff(request, timeout=_CALL_S)
        names = provider_pb2.PropertyDiff.Kind
        return {path: names.Name(one.kind).lower() for path, one in answer.detailedDiff.items()}

    def update(self, made: Made, **inputs: object) -> Made:
        """Check and update. Raises CallError."""
        checked = self.check(made.kind, made.name, inputs)
        state = self._update(made, checked, preview=False)
        return Made(made.kind, made.name, made.identity, checked, state)

    def planned_update(self, made: Made, **inputs: object) -> Properties:
        """Check, and update as a preview does."""
        return self._update(made, self.check(made.kind, made.name, inputs), preview=True)

    def _update(self, made: Made, checked: Properties, *, preview: bool) -> Properties:
        request = provider_pb2.UpdateRequest(
            id=made.identity,
            urn=_urn(made.kind, made.name),
            old_inputs=encode(made.inputs),
            olds=encode(made.state),
            news=encode(checked),
            preview=preview,
        )
        try:
            answer = self.stub.Update(request, timeout=_CALL_S)
        except grpc.RpcError as error:
            raise CallError(_details(error)) from None
        return decode(answer.properties)

    def delete(self, made: Made) -> None:
        """Delete. Raises CallError."""
        request = provider_pb2.DeleteRequest(
            id=made.identity, urn=_urn(made.kind, made.name), properties=encode(made.state)
        )
        try:
            self.stub.Delete(request, timeout=_CALL_S)
        except grpc.RpcError as error:
            raise CallError(_details(error)) from None

    def cancel(self) -> None:
        """Ask to cancel, as the engine does at a first Ctrl-C."""
        self.stub.Cancel(empty_pb2.Empty(), timeout=_CALL_S)

    def _port(self, stdout: IO[bytes] | None) -> int:
        line = stdout.readline() if stdout is not None else b""
        if not line.strip().isdigit():
            raise AssertionError(f"{self.name} gave no port but {line!r}; stderr: {self.errors}")
        return int(line)


def _urn(kind: str, name: str) -> str:
    return f"urn:pulumi:test::test::{kind}::{name}"


def _message(inputs: Mapping[str, object]) -> struct_pb2.Struct:
    return encode({key: _value(value) for key, value in inputs.items()})


def _value(given: object) -> Value:
    """Inputs as tests write them: plain Python, with Secret and Unknown where they matter."""
    if isinstance(given, dict):
        return {str(key): _value(item) for key, item in given.items()}
    if isinstance(given, list):
        return [_value(item) for item in given]
    if isinstance(given, int) and not isinstance(given, bool):
        return float(given)
    return given  # type: ignore[return-value]  # the wire refuses what it cannot carry


def _details(error: grpc.RpcError) -> str:
    return error.details() or "" if isinstance(error, grpc.Call) else str(error)
