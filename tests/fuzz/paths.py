"""Whether the path of a problem leads anywhere: in the config it is about, or in the model."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import get_args, get_origin

from pydantic import BaseModel

from stacks.config.spec import Spec

# As problems.dotted writes them: words, other keys in quotes, indices.
_PART = re.compile(
    r"""\.?(?:(?P<word>[^.\["]+)|(?P<quoted>"(?:[^"\\]|\\.)*"))|\[(?P<index>[0-9]+)\]"""
)
_NOTHING = object()


def leads_somewhere(path: str, raw: Mapping[str, object]) -> bool:
    """The path is in the config, or names what is missing in a mapping or section that exists."""
    if path == "config":
        return True
    value: object = raw
    kind: object = Spec
    for part in _parts(path):
        inside, section = _inside(value, part), _section(kind)
        if inside is _NOTHING and not _may_hold(value, section, part):
            return False
        kind = _field(section, part) if section is not None else _items(kind)
        value = inside
    return True


def _parts(path: str) -> Iterator[str | int]:
    at = 0
    while at < len(path):
        found = _PART.match(path, at)
        if found is None:
            raise AssertionError(f"{path!r} is not a path, from character {at} on")
        at = found.end()
        if found["index"] is not None:
            yield int(found["index"])
        else:
            yield json.loads(found["quoted"]) if found["quoted"] else found["word"]


def _inside(value: object, part: str | int) -> object:
    if isinstance(value, Mapping):
        return value.get(part, _NOTHING)
    if isinstance(value, list | tuple) and isinstance(part, int) and part < len(value):
        return value[part]
    return _NOTHING


def _may_hold(value: object, section: type[BaseModel] | None, part: str | int) -> bool:
    """A key that is missing: of a section if it has such a field, else of a mapping of the user's."""
    if section is not None:
        return part in _keys(section)
    return isinstance(value, Mapping) and isinstance(part, str)


def _keys(section: type[BaseModel]) -> set[str]:
    return {field.alias or name for name, field in section.model_fields.items()}


def _field(section: type[BaseModel], part: str | int) -> object:
    for name, field in section.model_fields.items():
        if part == (field.alias or name):
            return field.annotation
    return None


def _section(kind: object) -> type[BaseModel] | None:
    """The section that a value of this type is."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return kind
    if get_origin(kind) in (dict, tuple):
        return None
    return next((found for found in map(_section, get_args(kind)) if found), None)


def _items(kind: object) -> object:
    """The type of what is in a mapping or list of this type."""
    parts = get_args(kind)
    if get_origin(kind) is dict:
        return parts[1]
    if get_origin(kind) is tuple:
        return parts[0]
    return next((found for found in map(_items, parts) if found is not None), None)
