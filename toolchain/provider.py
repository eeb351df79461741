"""A resource provider as the engine sees it: the raw protocol, over kinds of resources.

`pulumi.provider.Provider` of the SDK has no create, read, update and delete of custom resources;
this has.
"""

# ruff: noqa: N802 - methods have the names the protocol gives them.
from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NoReturn

import grpc
import grpc.aio
from google.protobuf import empty_pb2, struct_pb2

from toolchain.differences import Change, top
from toolchain.protocol import engine_pb2, plugin_pb2, provider_pb2
from toolchain.protocol import provider_pb2_grpc as rpc
from toolchain.resources import Difference, Kind, Log, Operation, OperationError
from toolchain.values import decode, encode


@dataclass(slots=True)
class Provider(rpc.ResourceProviderServicer):
    """The servicer; its state is whether the engine has asked to cancel."""

    name: str
    version: str
    kinds: Mapping[str, Kind]
    engine_address: str
    cancelled: asyncio.Event = field(default_factory=asyncio.Event)
    _channel: grpc.aio.Channel | None = None

    async def Handshake(
        self, request: provider_pb2.ProviderHandshakeRequest, context: Context
    ) -> provider_pb2.ProviderHandshakeResponse:
        return provider_pb2.ProviderHandshakeResponse(accept_secrets=True)

    async def Configure(
        self, request: provider_pb2.ConfigureRequest, context: Context
    ) -> provider_pb2.ConfigureResponse:
        return provider_pb2.ConfigureResponse(acceptSecrets=True, supportsPreview=True)

    async def CheckConfig(
        self, request: provider_pb2.CheckRequest, context: Context
    ) -> provider_pb2.CheckResponse:
        return provider_pb2.CheckResponse(inputs=request.news)

    async def DiffConfig(
        self, request: provider_pb2.DiffRequest, context: Context
    ) -> provider_pb2.DiffResponse:
        return provider_pb2.DiffResponse(changes=provider_pb2.DiffResponse.DIFF_NONE)

    async def GetPluginInfo(
        self, request: empty_pb2.Empty, context: Context
    ) -> plugin_pb2.PluginInfo:
        return plugin_pb2.PluginInfo(version=self.version)

    async def GetSchema(
        self, request: provider_pb2.GetSchemaRequest, context: Context
    ) -> provider_pb2.GetSchemaResponse:
        schema = f'{{"name": "{self.name}", "version": "{self.version}"}}'
        return provider_pb2.GetSchemaResponse(schema=schema)

    async def Cancel(self, request: empty_pb2.Empty, context: Context) -> empty_pb2.Empty:
        self.cancelled.set()
        return empty_pb2.Empty()

    async def Invoke(
        self, request: provider_pb2.InvokeRequest, context: Context
    ) -> provider_pb2.InvokeResponse:
        text = self._left_out(f"function {request.tok}")
        await _refuse(context, grpc.StatusCode.UNIMPLEMENTED, text)

    async def Check(
        self, request: provider_pb2.CheckRequest, context: Context
    ) -> provider_pb2.CheckResponse:
        kind = await self._kind(request.urn, context)
        inputs, problems = kind.check(decode(request.news))
        failures = [
            provider_pb2.CheckFailure(property=problem.property, reason=problem.reason)
            for problem in problems
        ]
        return provider_pb2.CheckResponse(inputs=encode(inputs), failures=failures)

    async def Diff(
        self, request: provider_pb2.DiffRequest, context: Context
    ) -> provider_pb2.DiffResponse:
        kind = await self._kind(request.urn, context)
        state = decode(request.olds)
        wanted = kind.ignoring(request.ignoreChanges, decode(request.news), state)
        return _diff_response(kind.diff(decode(request.old_inputs), wanted, state))

    async def Create(
        self, request: provider_pb2.CreateRequest, context: Context
    ) -> provider_pb2.CreateResponse:
        kind = await self._kind(request.urn, context)
        inputs = decode(request.properties)
        if request.preview:
            return provider_pb2.CreateResponse(properties=encode(kind.planned(inputs, None)))
        try:
            made, state = await kind.create(self._operation(request.urn, request.timeout), inputs)
        except OperationError as error:
            await _refuse(context, grpc.StatusCode.UNKNOWN, str(error))
        return provider_pb2.CreateResponse(id=made, properties=encode(state))

    async def Update(
        self, request: provider_pb2.UpdateRequest, context: Context
    ) -> provider_pb2.UpdateResponse:
        kind = await self._kind(request.urn, context)
        state = decode(request.olds)
        inputs = kind.ignoring(request.ignoreChanges, decode(request.news), state)
        if request.preview:
            planned = kind.planned(inputs, state)
            return provider_pb2.UpdateResponse(properties=encode(planned))
        try:
            operation = self._operation(request.urn, request.timeout)
            state = await kind.update(operation, inputs, state)
        except OperationError as error:
            await _refuse(context, grpc.StatusCode.UNKNOWN, str(error))
        return provider_pb2.UpdateResponse(properties=encode(state))

    async def Delete(
        self, request: provider_pb2.DeleteRequest, context: Context
    ) -> empty_pb2.Empty:
        kind = await self._kind(request.urn, context)
        try:
            operation = self._operation(request.urn, request.timeout)
            await kind.delete(operation, decode(request.properties))
        except OperationError as error:
            await _refuse(context, grpc.StatusCode.UNKNOWN, str(error))
        return empty_pb2.Empty()

    async def Read(
        self, request: provider_pb2.ReadRequest, context: Context
    ) -> provider_pb2.ReadResponse:
        kind = await self._kind(request.urn, context)
        if not request.HasField("properties") or not request.properties.fields:
            text = f"{request.urn}: this kind of resource cannot be imported or looked up"
            await _refuse(context, grpc.StatusCode.UNIMPLEMENTED, text)
        state = encode(kind.read(decode(request.properties)))
        return provider_pb2.ReadResponse(id=request.id, properties=state, inputs=request.inputs)

    async def _kind(self, urn: str, context: Context) -> Kind:
        token = type_of(urn)
        kind = self.kinds.get(token)
        if kind is None:
            text = self._left_out(f"resource type {token}")
            await _refuse(context, grpc.StatusCode.UNIMPLEMENTED, text)
        return kind

    def _left_out(self, what: str) -> str:
        return f"{what} is not part of the lab's stand-in for the {self.name} plugin"

    def _operation(self, urn: str, timeout_s: float) -> Operation:
        if self._channel is None:
            self._channel = grpc.aio.insecure_channel(self.engine_address)
        log: Log = self._channel.unary_unary(
            "/pulumirpc.Engine/Log",
            request_serializer=engine_pb2.LogRequest.SerializeToString,
            response_deserializer=empty_pb2.Empty.FromString,
        )
        return Operation(urn, name_of(urn), timeout_s, log, self.cancelled)


Context = grpc.aio.ServicerContext[struct_pb2.Struct, struct_pb2.Struct]


def type_of(urn: str) -> str:
    """`command:remote:Command` of `urn:pulumi:dev::kube-ha::x:y:Z$command:remote:Command::a`."""
    return urn.split("::", 3)[2].rsplit("$", 1)[-1]


def name_of(urn: str) -> str:
    """The resource's name, which may itself hold `::`."""
    return urn.split("::", 3)[3]


async def _refuse(context: Context, code: grpc.StatusCode, text: str) -> NoReturn:
    await context.abort(code, text)
    raise AssertionError(text)  # abort does not return; the types say it might


_KINDS: Mapping[tuple[Change, bool], provider_pb2.PropertyDiff.Kind.ValueType] = {
    ("add", False): provider_pb2.PropertyDiff.ADD,
    ("add", True): provider_pb2.PropertyDiff.ADD_REPLACE,
    ("delete", False): provider_pb2.PropertyDiff.DELETE,
    ("delete", True): provider_pb2.PropertyDiff.DELETE_REPLACE,
    ("update", False): provider_pb2.PropertyDiff.UPDATE,
    ("update", True): provider_pb2.PropertyDiff.UPDATE_REPLACE,
}


def _diff_response(found: Difference) -> provider_pb2.DiffResponse:
    response = provider_pb2.DiffResponse(hasDetailedDiff=True)
    response.changes = (
        provider_pb2.DiffResponse.DIFF_SOME
        if found.changes
        else provider_pb2.DiffResponse.DIFF_NONE
    )
    for path, change in found.changes.items():
        kind = _KINDS[change, path in found.replaces]
        response.detailedDiff[path].CopyFrom(provider_pb2.PropertyDiff(kind=kind, inputDiff=True))
    response.diffs.extend(sorted({top(path) for path in found.changes}))
    response.replaces.extend(sorted({top(path) for path in found.replaces}))
    return response
