"""Rendered files as those who read them see them: strict, and with nothing left over."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator
from typing import TypeAlias

import yaml

Data: TypeAlias = "dict[str, Data] | list[Data] | str | int | float | bool | None"


class _Strict(yaml.CSafeLoader):
    """Refuses a key that is there twice, as Kubernetes' own strict readers do."""


def _mapping(loader: _Strict, node: yaml.MappingNode) -> dict[Hashable, object]:
    found: dict[Hashable, object] = {}
    for key, value in node.value:
        name = loader.construct_object(key, deep=True)
        assert name not in found, f"{name} is there twice"
        found[name] = loader.construct_object(value, deep=True)
    return found


_Strict.add_constructor("tag:yaml.org,2002:map", _mapping)


def documents(text: str) -> list[dict[str, Data]]:
    """The documents of a YAML file, of which every key is there once."""
    return [*yaml.load_all(text, _Strict)]


def environment(text: str) -> dict[str, str]:
    """A file of systemd's EnvironmentFile= (systemd.exec(5)); plain lines only.

    Quotes, backslashes, blanks at the ends and comments mean something there: none may occur.
    """
    found: dict[str, str] = {}
    for line in text.splitlines():
        name, equals, value = line.partition("=")
        assert equals, line
        assert re.fullmatch(r"[A-Z][A-Z0-9_]*", name), line
        assert not re.search(r"[\\\"'#;\s]", value), line
        assert name not in found, f"{name} is there twice"
        found[name] = value
    return found


def sysctl(text: str) -> dict[str, str]:
    """A file of sysctl.d(5). A name with a * stands for those that there are, and with a - it may fail."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        match = re.fullmatch(r"-?([a-z0-9_.*-]+) = ([0-9]+(?: [0-9]+)*)", line)
        assert match, line
        assert match[1] not in found
        found[match[1]] = match[2]
    return found


def unit(text: str) -> dict[str, list[tuple[str, str]]]:
    """Settings of a systemd unit or drop-in by section, in their order; comments left out."""
    found: dict[str, list[tuple[str, str]]] = {}
    section = ""
    for line in text.replace("\\\n", " ").splitlines():
        if line.startswith("["):
            section = line.strip("[]")
            assert section not in found, line
            found[section] = []
        elif line and not line.startswith("#"):
            name, equals, value = line.partition("=")
            assert equals, line
            found[section].append((name, value))
    return found


def assigned(value: str) -> tuple[str, str]:
    """One `Environment="NAME=value"` as systemd takes it: quotes, escapes and specifiers undone."""
    assert re.fullmatch(r'"([^"\\]|\\.)*"', value), value
    plain = re.sub(r"\\(.)", r"\1", value[1:-1])
    assert not re.search(r"%[^%]", plain.replace("%%", "")), f"a specifier: {value}"
    name, _, text = plain.replace("%%", "%").partition("=")
    return name, text


def haproxy(text: str) -> Iterator[tuple[str, list[str]]]:
    """Lines of haproxy.cfg as (section, words), comments left out; the configuration manual, 2.2."""
    section = ""
    for line in text.splitlines():
        words = line.split("#", 1)[0].split()
        assert not re.search(r"[\\\"'$]", line), line
        if words and not line.startswith(" "):
            section = " ".join(words)
            yield section, []
        elif words:
            yield section, words
