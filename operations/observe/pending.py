"""What of a config was not applied yet, by what the stack remembers of its last success. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from stacks.cluster.plan import Plan
from stacks.edits import fence, memory

# Of the memory: values by path that an update has to change before the machines can be as planned.
_SECTIONS = ("config", "versions", "scripts")
_OTHER = "the last update was that of another version of this program"
_MADE = ("rendered",)  # follows from the others, unless this program makes something else of them


def pending(remembered: Mapping[str, object] | None, plan: Plan) -> list[str]:
    """Lines `pools.worker.count: 2, applied was 1`; empty when all of it was applied."""
    if remembered is None:
        return ["the stack remembers no up that came to its end"]
    if remembered.get("format") != memory.FORMAT:
        return [_OTHER]
    try:
        now = memory.of(fence.kept(memory.read(remembered), plan))
    except memory.UnreadableMemoryError:
        return [_OTHER]
    return _differing(remembered, now, _SECTIONS) or _differing(remembered, now, _MADE)


def _differing(
    was: Mapping[str, object], now: Mapping[str, object], sections: Sequence[str]
) -> list[str]:
    before = {path: value for key in sections for path, value in _flat(was.get(key), key)}
    after = {path: value for key in sections for path, value in _flat(now[key], key)}
    return [
        _line(path, after.get(path), before.get(path))
        for path in sorted(before.keys() | after.keys())
        if before.get(path) != after.get(path)
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
    if section == "rendered":
        return f"{rest}: made otherwise by this version of the program"
    name = rest if section == "config" else f"version of {rest}"
    return f"{name}: {_word(now)}, applied was {_word(was)}"


def _word(value: object) -> str:
    if value is None:
        return "unset"
    if isinstance(value, bool):
        return str(value).lower()
    text = str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
