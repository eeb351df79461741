"""The `kube-ha:` keys of a stack's config as plain values: from its file, or from the engine."""

from __future__ import annotations

import difflib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from stacks.config import engine_yaml, local_file
from stacks.config.problems import Problem, dotted, shown

PREFIX = "kube-ha:"
_PROJECT = PREFIX[:-1]


class StackFileError(ValueError):
    """A stack file that is not one; the text says where."""


class StackFile(NamedTuple):
    """What a stack file says to this program."""

    config: dict[str, object]  # by key, without prefix
    problems: list[Problem]  # what the engine would not read, or not as it was meant


def read(file: Path) -> dict[str, object]:
    """The config by key, without prefix. Raises StackFileError, for what is misread too."""
    said = look(file)
    if said.problems:
        raise StackFileError("; ".join(f"{path}: {text}" for path, text in said.problems))
    return said.config


def look(file: Path) -> StackFile:
    """As `read`, with what is misread beside the rest, so that all problems are told at once.

    Raises StackFileError for a file that is not a stack file at all.
    """
    try:
        text = local_file.read(file, local_file.CONFIG_MOST).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise StackFileError(f"cannot be read: {error}") from None
    try:
        parsed, misread = engine_yaml.read(text)
    except engine_yaml.NoYamlError as error:
        raise StackFileError(str(error)) from None
    config = parsed.get("config") if isinstance(parsed, dict) else None
    if not isinstance(parsed, dict) or not isinstance(config, dict):
        raise StackFileError("has no `config:`; see examples/ for complete stack files")
    found = [*_beside(parsed), *_keys(config)]
    found += [Problem(_path(at), words) for at, words in misread if _is_ours(at)]
    return StackFile(dict(_own(config)), found)


def _own(config: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """Keys of this project; the engine gives its name to those without any."""
    for key, value in config.items():
        if ":" not in key or key.startswith(PREFIX):
            yield key.removeprefix(PREFIX), value


def _keys(config: Mapping[str, object]) -> Iterator[Problem]:
    """Keys that the engine refuses, reads as another, or hands to nobody."""
    for key, value in config.items():
        namespace, colon, name = key.partition(":")
        if colon and ":" in name:
            text = f"the engine takes no such key; write {PREFIX}{name.rpartition(':')[2]}"
            yield Problem(shown(key), text)
        elif colon and namespace != _PROJECT and _is_near(namespace):
            text = f"is of a project {namespace!r}, and read by nobody here; write {PREFIX}{name}"
            yield Problem(shown(key), text)
        elif not colon and f"{PREFIX}{key}" in config:
            text = (
                f"stands here as {PREFIX}{key} too, which is the same to the engine; leave it out"
            )
            yield Problem(shown(key), text)
        elif value is None and (not colon or namespace == _PROJECT):
            text = "is empty, which the engine takes for a text; leave the key out, or write {}"
            yield Problem(name if colon else key, text)


def _beside(parsed: Mapping[str, object]) -> Iterator[Problem]:
    """Keys that stand beside `config` and belong below it."""
    for key in parsed:
        namespace, colon, _ = key.partition(":")
        if colon and _is_near(namespace):
            text = "stands beside `config:`, where nobody reads it; indent it, to stand below"
            yield Problem(shown(key), text)


def _is_near(namespace: str) -> bool:
    """The project's name, or what may be meant by it."""
    plain = [word.lower().replace("-", "").replace("_", "") for word in (namespace, _PROJECT)]
    return bool(difflib.get_close_matches(plain[0], plain[1:], cutoff=0.8))


def _is_ours(at: Sequence[str | int]) -> bool:
    """A place in a value of this project."""
    key = at[1] if len(at) > 1 and at[0] == "config" else ":"
    return isinstance(key, str) and (":" not in key or key.startswith(PREFIX))


def _path(at: Sequence[str | int]) -> str:
    return dotted((str(at[1]).removeprefix(PREFIX), *at[2:]))


def of_engine(environment: Mapping[str, str]) -> dict[str, object]:
    """The config as the engine hands it to a program: in two variables of its environment."""
    return from_engine(
        json.loads(environment.get("PULUMI_CONFIG", "{}")),
        secret=json.loads(environment.get("PULUMI_CONFIG_SECRET_KEYS", "[]")),
    )


def strays(environment: Mapping[str, str]) -> list[Problem]:
    """Keys that the engine hands over for a project whose name is nearly this one's."""
    return [*_keys(json.loads(environment.get("PULUMI_CONFIG", "{}")))]


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
    """The text of an encrypted key, which the engine hands over decrypted; empty when not given."""
    given: Mapping[str, str] = json.loads(environment.get("PULUMI_CONFIG", "{}"))
    return given.get(f"{PREFIX}{key}", "")


def _plain(text: str) -> object:
    try:
        value: object = json.loads(text)
    except ValueError:
        return text  # the engine hands plain strings over as they are
    return value
