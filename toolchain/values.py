"""Property values between the wire (protobuf Struct) and Python, with secrets and unknowns kept.

On the wire, values that JSON has no word for are objects with a signature under one reserved key;
an unknown value is one reserved string. Both are constants of the engine's protocol
(sdk/go/common/resource, properties.go).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from google.protobuf import struct_pb2

if TYPE_CHECKING:
    from typing import TypeAlias

SIGNATURE = "4dabf18193072939515e22adb298388d"
SECRET = "1b47061264138c4ac30d75fd1eb44270"  # noqa: S105 (the word is a type name on the wire)
ASSET = "c44067f5952c0a294b673a41bacd8c17"
ARCHIVE = "0def7320c3a5731c473e5ecbe6d01bc7"
OUTPUT = "d0e6a833031e9bbcd3f4e8bde6ca49a4"
UNKNOWN_TEXT = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"


@dataclass(frozen=True, slots=True)
class Secret:
    """A value that the engine encrypts and never shows. Its repr does not show it either."""

    value: Value

    def __repr__(self) -> str:
        """Never the value: reprs end up in logs."""
        return "Secret([secret])"


@dataclass(frozen=True, slots=True)
class Unknown:
    """A value that a preview cannot know."""


UNKNOWN = Unknown()

Value: TypeAlias = "bool | float | str | list[Value] | dict[str, Value] | Secret | Unknown | None"
Properties: TypeAlias = "dict[str, Value]"


def decode(message: struct_pb2.Struct) -> Properties:
    """Properties of a request; keys whose value is null are left out: that is what null means."""
    found = {key: _decode(item) for key, item in message.fields.items()}
    return {key: item for key, item in found.items() if item is not None}


def encode(properties: Mapping[str, Value]) -> struct_pb2.Struct:
    """Properties of an answer."""
    message = struct_pb2.Struct()
    for key, value in properties.items():
        message.fields[key].CopyFrom(_encode(value))
    return message


def plain(value: Value) -> Value:
    """The value without secret marks, at any depth. Raises ValueError where it is unknown."""
    match value:
        case Secret():
            return plain(value.value)
        case Unknown():
            raise ValueError("a value is not known yet; only a preview may meet that")
        case list():
            return [plain(item) for item in value]
        case dict():
            return {key: plain(item) for key, item in value.items()}
        case _:
            return value


def has_unknown(value: Value) -> bool:
    """Whether anything in the value, at any depth, is unknown."""
    match value:
        case Unknown():
            return True
        case Secret():
            return has_unknown(value.value)
        case list():
            return any(has_unknown(item) for item in value)
        case dict():
            return any(has_unknown(item) for item in value.values())
        case _:
            return False


def _decode(message: struct_pb2.Value) -> Value:
    match message.WhichOneof("kind"):
        case "string_value":
            text = message.string_value
            return UNKNOWN if text == UNKNOWN_TEXT else text
        case "number_value":
            return message.number_value
        case "bool_value":
            return message.bool_value
        case "list_value":
            return [_decode(item) for item in message.list_value.values]
        case "struct_value":
            return _decode_object(message.struct_value)
        case _:
            return None


def _decode_object(message: struct_pb2.Struct) -> Value:
    found = decode(message)
    match found.get(SIGNATURE):
        case signature if signature == SECRET:
            return Secret(found.get("value"))
        case signature if signature == OUTPUT:
            value: Value = found.get("value", UNKNOWN)
            return Secret(value) if found.get("secret") is True else value
        case _:
            return found


def _encode(value: Value) -> struct_pb2.Value:
    match value:
        case Secret():
            wrapped: Properties = {SIGNATURE: SECRET, "value": value.value}
            return struct_pb2.Value(struct_value=encode(wrapped))
        case Unknown():
            return struct_pb2.Value(string_value=UNKNOWN_TEXT)
        case None:
            return struct_pb2.Value(null_value=struct_pb2.NULL_VALUE)
        case bool():
            return struct_pb2.Value(bool_value=value)
        case int() | float():
            return struct_pb2.Value(number_value=float(value))
        case str():
            return struct_pb2.Value(string_value=value)
        case list():
            items = [_encode(item) for item in value]
            return struct_pb2.Value(list_value=struct_pb2.ListValue(values=items))
        case dict():
            return struct_pb2.Value(struct_value=encode(value))
