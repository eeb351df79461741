"""What of a config was not applied yet, by what the stack remembers of its last success. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from stacks import memory
from stacks.plan import Plan

# Of the memory: values by path that an up has to change before the machines can be as planned.
_SECTIONS = ("config", "versions", "scripts")


def pending(remembered: Mapping[str, object] | None, plan: Plan) -> list[str]:
    """Lines `pools.worker.count: 2, applied was 1`; empty when all of it was applied."""
    if remembered is None:
        return ["the stack remembers no up that came to its end"]
    if remembered.get("format") != memory.FORMAT:
        return ["the last up was that of another version of this program"]
    now = memory.of(plan)
    was = {key: value for key in _SECTIONS for key, value in _flat(remembered.get(key), key)}
    is_ = {key: value for key in _SECTIONS for key, value in _flat(now[key], key)}
    return [
        _line(path, is_.get(path), was.get(path))
        for path in sorted(was.keys() | is_.keys())
        if was.get(path) != is_.get(path)
    ]


def _flat(value: object, path: str) -> Iterator[tuple[str, object]]:
    """Values by path; what only allows a change is none."""
    if not isinstance(value, Mapping):
        yield path, value
        return
    for key, inner in value.items():
        if (path, key) != ("config", "allow"):
            yield from _flat(inner, f"{path}.{key}")


def _line(path: str, now: object, was: object) -> str:
    section, _, rest = path.partition(".")
    if section == "scripts":
        return f"script {rest}: another version"
    name = rest if section == "config" else f"version of {rest}"
    return f"{name}: {_word(now)}, applied was {_word(was)}"


def _word(value: object) -> str:
    if value is None:
        return "unset"
    if isinstance(value, bool):
        return str(value).lower()
    text = str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
