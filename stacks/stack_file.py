"""The `kube-ha:` keys of a stack's config as plain values: from its file, or from the engine."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TextIO

import yaml

PREFIX = "kube-ha:"


class StackFileError(ValueError):
    """A stack file that is not one; the text says where."""


class _Loader(yaml.SafeLoader):
    """YAML that refuses a key given twice, of which PyYAML silently keeps the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[object, object]:  # noqa: FBT001, FBT002 (signature of PyYAML)
        seen: set[object] = set()
        for key_node, _ in node.value:
            key = getattr(key_node, "value", None)
            if isinstance(key, str) and key in seen:
                line = key_node.start_mark.line + 1
                raise StackFileError(f"line {line}: key `{key}` is there twice")
            seen.add(key if isinstance(key, str) else None)
        return dict(super().construct_mapping(node, deep=deep))


def read(file: Path) -> dict[str, object]:
    """The config by key, without prefix. Raises StackFileError."""
    try:
        with file.open() as stream:
            parsed = _parse(stream)
    except (OSError, UnicodeDecodeError) as error:
        raise StackFileError(f"cannot be read: {error}") from None
    config = parsed.get("config") if isinstance(parsed, dict) else None
    if not isinstance(config, dict):
        raise StackFileError("has no `config:`; see examples/ for complete stack files")
    return {
        str(key).removeprefix(PREFIX): value
        for key, value in config.items()
        if str(key).startswith(PREFIX)
    }


def of_engine(environment: Mapping[str, str]) -> dict[str, object]:
    """The config as the engine hands it to a program: in two variables of its environment."""
    return from_engine(
        json.loads(environment.get("PULUMI_CONFIG", "{}")),
        secret=json.loads(environment.get("PULUMI_CONFIG_SECRET_KEYS", "[]")),
    )


def from_engine(values: Mapping[str, str], *, secret: Collection[str]) -> dict[str, object]:
    """The config by key, without prefix, of the engine's full keys and their texts.

    `secret` are the full keys that hold something encrypted. Their values stand as in the file, as
    `{"secure": ...}` and without the text: the plan has no secrets.
    """
    return {
        key.removeprefix(PREFIX): {"secure": ""} if key in secret else _plain(value)
        for key, value in values.items()
        if key.startswith(PREFIX)
    }


def _plain(text: str) -> object:
    try:
        value: object = json.loads(text)
    except ValueError:
        return text  # the engine hands plain strings over as they are
    return value


def _parse(stream: TextIO) -> object:
    try:
        parsed: object = yaml.load(stream, _Loader)  # noqa: S506 (a SafeLoader)
    except yaml.YAMLError as error:
        raise StackFileError(f"is no YAML: {error}") from None
    return parsed
