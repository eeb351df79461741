"""What changed between two sets of inputs, as paths a preview can show."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from toolchain.values import ARCHIVE, ASSET, SIGNATURE, Properties, Secret, Value

Change = Literal["add", "delete", "update"]

_KEPT_BY_PROVIDERS = {"__defaults"}
"""Notes of official providers in the inputs they saved: a stack may have been theirs before."""


def differences(old: Properties, new: Properties) -> dict[str, Change]:
    """Changed paths such as `stdin`, `connection.host` or `triggers[0]`, sorted; maybe none.

    A value that becomes secret, or stops being so, counts as changed: the official providers
    compare so.
    """
    found: dict[str, Change] = {}
    _compare_objects("", old, new, found)
    return dict(sorted(found.items()))


def top(path: str) -> str:
    """The input a path belongs to: `connection` for `connection.host`."""
    return path.split(".", 1)[0].split("[", 1)[0]


def _compare(path: str, old: Value, new: Value, found: dict[str, Change]) -> None:
    match old, new:
        case Secret(), Secret():
            _compare(path, _bare(old.value), _bare(new.value), found)
        case dict(), dict() if not _is_asset(old) and not _is_asset(new):
            _compare_objects(path + ".", old, new, found)
        case list(), list():
            _compare_lists(path, old, new, found)
        case _:
            if not _same(old, new):
                found[path] = "update"


def _compare_objects(
    prefix: str, old: Mapping[str, Value], new: Mapping[str, Value], found: dict[str, Change]
) -> None:
    for key in (old.keys() | new.keys()) - _KEPT_BY_PROVIDERS:
        path = prefix + key
        if key not in new:
            found[path] = "delete"
        elif key not in old:
            found[path] = "add"
        else:
            _compare(path, old[key], new[key], found)


def _compare_lists(path: str, old: list[Value], new: list[Value], found: dict[str, Change]) -> None:
    for index in range(max(len(old), len(new))):
        place = f"{path}[{index}]"
        if index >= len(new):
            found[place] = "delete"
        elif index >= len(old):
            found[place] = "add"
        else:
            _compare(place, old[index], new[index], found)


def _bare(value: Value) -> Value:
    """A value inside a secret, where further marks of secrecy say nothing."""
    match value:
        case Secret():
            return _bare(value.value)
        case list():
            return [_bare(item) for item in value]
        case dict():
            return {key: _bare(item) for key, item in value.items()}
        case _:
            return value


def _is_asset(value: dict[str, Value]) -> bool:
    return value.get(SIGNATURE) in (ASSET, ARCHIVE)


def _same(old: Value, new: Value) -> bool:
    if isinstance(old, dict) and isinstance(new, dict):
        # Assets: the content decides, not the path it was read from.
        return old.get(SIGNATURE) == new.get(SIGNATURE) and old.get("hash") == new.get("hash")
    # 1 and True are equal in Python and different on the wire.
    return type(old) is type(new) and old == new
