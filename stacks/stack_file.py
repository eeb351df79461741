"""The `kube-ha:` keys of a stack's config as plain values: from its file, or from the engine."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path

import yaml

PREFIX = "kube-ha:"
_DEEPEST = 100  # levels of lists and mappings; the deepest there is, an audit policy, has ten
# The C parser reads a thousand hosts in a tenth of the time, where PyYAML was built with it.
_LOADER = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader


class StackFileError(ValueError):
    """A stack file that is not one; the text says where."""


def read(file: Path) -> dict[str, object]:
    """The config by key, without prefix. Raises StackFileError."""
    try:
        text = file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise StackFileError(f"cannot be read: {error}") from None
    parsed = _parse(text)
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


def secret_of_engine(environment: Mapping[str, str], key: str) -> str:
    """The text of an encrypted key, which the engine hands over in clear; empty when not given."""
    given: Mapping[str, str] = json.loads(environment.get("PULUMI_CONFIG", "{}"))
    return given.get(f"{PREFIX}{key}", "")


def _plain(text: str) -> object:
    try:
        value: object = json.loads(text)
    except ValueError:
        return text  # the engine hands plain strings over as they are
    return value


def _parse(text: str) -> object:
    try:
        _refuse_depth(text)
        loader = _LOADER(text)
        node: yaml.Node | None = loader.get_single_node()
        _refuse_keys_given_twice(node)
        return None if node is None else loader.construct_document(node)
    except yaml.YAMLError as error:
        raise StackFileError(f"is no YAML: {error}") from None


def _refuse_depth(text: str) -> None:
    """Before anything that calls itself for each level: the C parser would end the process."""
    depth = 0
    for event in yaml.parse(text, _LOADER):
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEEPEST:
            raise StackFileError(f"has more than {_DEEPEST} levels; no config has so many")


def _refuse_keys_given_twice(root: yaml.Node | None) -> None:
    """Of which PyYAML silently keeps the last."""
    left, known = [root], {id(root)}  # an alias may lead back to where it stands
    while left:
        node = left.pop()
        below: list[yaml.Node] = []
        if isinstance(node, yaml.SequenceNode):
            below = node.value
        elif isinstance(node, yaml.MappingNode):
            seen: set[str] = set()
            for key, value in node.value:
                below.append(value)
                if isinstance(key, yaml.ScalarNode):
                    if key.value in seen:
                        line = key.start_mark.line + 1
                        raise StackFileError(f"line {line}: key `{key.value}` is there twice")
                    seen.add(key.value)
        fresh = [each for each in below if id(each) not in known]
        known.update(id(each) for each in fresh)
        left += fresh
