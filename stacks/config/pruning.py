"""Takes the wrong values out of a config, so that the checks across fields can run on the rest."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from pydantic_core import ErrorDetails

from stacks.config.translation import location


def pruned(text: str, details: Iterable[ErrorDetails]) -> str:
    """The JSON config without its wrong values, so that the rest can be checked.

    Returns `text` itself when nothing can be taken away.
    """
    try:
        config: object = json.loads(text)
    except (ValueError, RecursionError):
        return text
    # Last list items first: removing one moves those behind it.
    for detail in sorted(
        details, key=lambda d: [str(p).rjust(8) for p in location(d)], reverse=True
    ):
        loc = location(detail)
        stand_in = _stand_in(loc)
        if stand_in is not None:
            _set(config, loc, stand_in)
        elif detail["type"] == "missing":
            _remove(config, loc[:-1])
        else:
            _remove(config, loc)
    return json.dumps(config)


_BENCHMARKS = "198.18."  # a network that is kept for them (RFC 2544), so no machine's


def is_stand_in(address: str) -> bool:
    """Whether an address stands in for a wrong one, and so is not to be shown."""
    return address.startswith(_BENCHMARKS)


def _stand_in(loc: tuple[str | int, ...]) -> object:
    """A valid value for what cannot be left out; items of lists keep their places with it.

    Problems with stand-ins are never shown, for their paths are known to be wrong.
    """
    match loc:
        case ("cluster", "name") | ("pools", _, "hosts", int(), "name"):
            return "unnamed" + "".join(f"-{part}" for part in loc[3:4])
        case ("cluster", "kubernetes"):
            return "0.0.0"
        case ("pools", _, "hosts", int(index)):
            return {"name": f"unnamed-{index}", "address": _stand_in((*loc, "address"))}
        case ("pools", _, "hosts", int(index), "address"):
            return f"{_BENCHMARKS}{index // 256 % 256}.{index % 256}"
        case ("pools" | "nodes", _, "taints", int(index)):
            return {"key": f"unnamed-{index}", "effect": "NoSchedule"}
        case ("pools" | "nodes", _, "taints", int(index), "key"):
            return f"unnamed-{index}"
        case ("pools" | "nodes", _, "taints", int(), "effect"):
            return "NoSchedule"
    return None


def _set(config: object, loc: Sequence[str | int], value: object) -> None:
    match _at(config, loc[:-1]), loc[-1]:
        case dict() as section, str() as key:
            section[key] = value
        case list() as items, int() as index if index < len(items):
            items[index] = value


def _remove(config: object, loc: Sequence[str | int]) -> None:
    if not loc:
        return
    match _at(config, loc[:-1]), loc[-1]:
        case dict() as section, str() as key:
            section.pop(key, None)
        case list() as items, int() as index if index < len(items):
            del items[index]


def _at(config: object, loc: Sequence[str | int]) -> object:
    for part in loc:
        if isinstance(config, dict) and isinstance(part, str):
            config = config.get(part)
        elif isinstance(config, list) and isinstance(part, int) and part < len(config):
            config = config[part]
        else:
            return None
    return config
