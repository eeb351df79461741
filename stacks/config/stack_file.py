"""The `kube-ha:` keys of a stack's config as plain values: from its file, or from the engine."""

from __future__ import annotations

import difflib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from stacks.config import engine_yaml, handed_over, hosts_file, local_file
from stacks.config.hosts_file import Origins
from stacks.config.problems import Problem, dotted, shown
from stacks.config.translation import ADDON_SECRETS

PROJECT = "kube-ha"
PREFIX = f"{PROJECT}:"


class StackFileError(ValueError):
    """A stack file that is not one; the text says where."""


class StackFile(NamedTuple):
    """What a stack file says to this program."""

    config: dict[str, object]  # by key, without prefix; with the hosts of files that it names
    problems: list[Problem]  # what would not be read, or not as it was meant
    origins: Origins  # of hosts that are in files of their own
    size: int = 0  # bytes, where the engine hands all of it to the program

    def located(self, found: Iterable[tuple[str, str]]) -> list[Problem]:
        """Problems as they are shown: those of hosts in a file by its name and line."""
        return hosts_file.located(found, self.origins)

    def placed(self, path: str) -> str:
        """A config path as it is shown."""
        return hosts_file.placed(path, self.origins)


def read(file: Path) -> dict[str, object]:
    """The config by key, without prefix. Raises StackFileError, for what is misread too."""
    said = look(file)
    if said.problems:
        found = said.located(said.problems)
        raise StackFileError("; ".join(f"{path}: {text}" for path, text in found))
    return said.config


def look(file: Path) -> StackFile:
    """As `read`, with what is misread beside the rest, so that all problems are told at once.

    Raises StackFileError for a file that is not a stack file at all.
    """
    config, found = _parsed(file)
    own = hosts_file.opened(dict(_own(config)), folder(file))
    found = [*found, *own.problems]
    return StackFile(own.config, found, own.origins, handed_over.size(dict(_full(config))))


def hosts_files(file: Path) -> list[str]:
    """Names of the files with hosts that a stack file names. Raises StackFileError."""
    return hosts_file.named(dict(_own(_parsed(file)[0])))


def folder(file: Path) -> Path:
    """Where files that a stack file names are: its folder, and that of the file behind a link."""
    return file.resolve().parent


def _parsed(file: Path) -> tuple[Mapping[str, object], list[Problem]]:
    """What stands below `config:`, and what in the file is misread. Raises StackFileError."""
    try:
        text = local_file.read(file, local_file.CONFIG_MOST).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise StackFileError(f"cannot be read: {error}") from None
    try:
        said = engine_yaml.read(text)
    except engine_yaml.NoYamlError as error:
        raise StackFileError(str(error)) from None
    parsed = said.value
    config = parsed.get("config") if isinstance(parsed, dict) else None
    if not isinstance(parsed, dict) or not isinstance(config, dict):
        raise StackFileError("has no `config:`; see examples/ for complete stack files")
    found = [*_beside(parsed), *_keys(config)]
    found += [Problem(_path(at), words) for at, words in said.problems if _is_ours(at)]
    return config, found


def _full(config: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """Values by the keys that the engine gives them."""
    for key, value in config.items():
        yield (key if ":" in key else f"{PREFIX}{key}"), value


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
        elif colon and namespace != PROJECT and _is_near(namespace):
            text = f"is of a project {namespace!r}, and read by nobody here; write {PREFIX}{name}"
            yield Problem(shown(key), text)
        elif not colon and f"{PREFIX}{key}" in config:
            text = (
                f"stands here as {PREFIX}{key} too, which is the same to the engine; leave it out"
            )
            yield Problem(shown(key), text)
        elif value is None and (not colon or namespace == PROJECT):
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
    plain = [word.lower().replace("-", "").replace("_", "") for word in (namespace, PROJECT)]
    return bool(difflib.get_close_matches(plain[0], plain[1:], cutoff=0.8))


def _is_ours(at: Sequence[str | int]) -> bool:
    """A place in a value of this project."""
    key = at[1] if len(at) > 1 and at[0] == "config" else ":"
    return isinstance(key, str) and (":" not in key or key.startswith(PREFIX))


def _path(at: Sequence[str | int]) -> str:
    return dotted((str(at[1]).removeprefix(PREFIX), *at[2:]))


def of_engine(environment: Mapping[str, str], folder: Path) -> StackFile:
    """The config as the engine hands it to a program: in two variables of its environment.

    `folder`: where the stack file is, and the files with hosts that it names.
    """
    given: Mapping[str, str] = json.loads(environment.get("PULUMI_CONFIG", "{}"))
    secret = json.loads(environment.get("PULUMI_CONFIG_SECRET_KEYS", "[]"))
    own = hosts_file.opened(from_engine(given, secret=secret), folder)
    return StackFile(own.config, [*_keys(given), *own.problems], own.origins)


def of_program(config: Mapping[str, object], folder: Path) -> StackFile:
    """The config, by key without prefix, that another program hands to a component.

    `folder`: where the files with hosts are that it names.
    """
    own = hosts_file.opened(config, folder)
    return StackFile(own.config, [*own.problems], own.origins)


def from_engine(values: Mapping[str, str], *, secret: Collection[str]) -> dict[str, object]:
    """The config by key, without prefix, of the engine's full keys and their texts.

    `secret` are the full keys that hold something encrypted. Their values stand as in the file, as
    `{"secure": ...}` and without the text: the plan has no secrets.
    """
    return {
        key.removeprefix(PREFIX): _hidden(key, value) if key in secret else _plain(value)
        for key, value in values.items()
        if key.startswith(PREFIX)
    }


def _hidden(key: str, text: str) -> dict[str, object]:
    """What stands for something encrypted; of values of add-ons their names are known."""
    if key == f"{PREFIX}{ADDON_SECRETS}" and isinstance(named := _plain(text), dict):
        return {str(name): {"secure": ""} for name in named}
    return {"secure": ""}


def addon_secrets_of_engine(environment: Mapping[str, str]) -> dict[str, str]:
    """Values of Secrets of add-ons, by name, as the engine hands them over: decrypted."""
    found = _plain(secret_of_engine(environment, ADDON_SECRETS))
    named = found.items() if isinstance(found, dict) else ()
    return {str(name): text if isinstance(text, str) else "" for name, text in named}


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
