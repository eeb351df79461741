"""What the stand-ins leave out they refuse in words; what they are asked at a start they answer."""

from __future__ import annotations

import json

import grpc
import pytest
from google.protobuf import empty_pb2
from pulumi.runtime.proto import provider_pb2

from tests.toolchain.plugin_client import Plugin
from toolchain.values import encode

URN = "urn:pulumi:test::test::"


@pytest.fixture(params=["command", "tls"])
def either(request: pytest.FixtureRequest, command: Plugin, tls: Plugin) -> Plugin:
    """Each of the two plugins."""
    return command if request.param == "command" else tls


def test_functions_are_refused_by_name(either: Plugin) -> None:
    request = provider_pb2.InvokeRequest(tok=f"{either.name}:index:run")
    with pytest.raises(grpc.RpcError) as caught:
        either.stub.Invoke(request)
    told = str(caught.value)
    assert "UNIMPLEMENTED" in told
    assert f"function {either.name}:index:run is not part of the lab's stand-in" in told


def test_unknown_kinds_are_refused_by_name(either: Plugin) -> None:
    request = provider_pb2.CheckRequest(urn=f"{URN}{either.name}:x:Y::a", news=encode({}))
    with pytest.raises(grpc.RpcError) as caught:
        either.stub.Check(request)
    assert f"resource type {either.name}:x:Y is not part of the lab's stand-in" in str(caught.value)


def test_the_kind_of_a_child_is_the_last_of_its_types(command: Plugin) -> None:
    urn = f"{URN}ha:etcd:Member$ha:x:Y$command:local:Command::a::b"
    made = command.stub.Create(
        provider_pb2.CreateRequest(urn=urn, properties=encode({"create": "true"}))
    )
    assert made.id.startswith("a::b")


def test_a_refresh_gives_back_what_was_there(either: Plugin) -> None:
    kind = {"command": "command:local:Command", "tls": "tls:index/privateKey:PrivateKey"}
    state = encode({"some": "state"})
    read = either.stub.Read(
        provider_pb2.ReadRequest(
            id="x", urn=f"{URN}{kind[either.name]}::a", properties=state, inputs=encode({"i": "n"})
        )
    )
    assert (read.id, read.properties, read.inputs) == ("x", state, encode({"i": "n"}))


def test_an_import_is_refused(either: Plugin) -> None:
    kind = {"command": "command:local:Command", "tls": "tls:index/privateKey:PrivateKey"}
    with pytest.raises(grpc.RpcError) as caught:
        either.stub.Read(provider_pb2.ReadRequest(id="x", urn=f"{URN}{kind[either.name]}::a"))
    assert "cannot be imported or looked up" in str(caught.value)


def test_versions_are_those_of_the_python_packages(either: Plugin) -> None:
    from toolchain.install import PLUGINS

    assert either.stub.GetPluginInfo(empty_pb2.Empty()).version == PLUGINS[either.name]
    schema = json.loads(either.stub.GetSchema(provider_pb2.GetSchemaRequest()).schema)
    assert schema == {"name": either.name, "version": PLUGINS[either.name]}
