"""A pair that is told falsely made small: what it needs for that stays, whatever else goes."""

from __future__ import annotations

import copy
import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence

from stacks.edits import memory
from tests.fuzz.clusters import Config
from tests.plan.settled import Stacks
from tests.plan.told_lives import accepted, of_pair
from tests.plan.told_pairs import Pair

Path = tuple[str, ...]

_TRIES = 80  # of a smaller pair that is not refused
_KEPT = frozenset(
    {("cluster",), ("machines",), ("pools",), ("cluster", "name"), ("machines", "provider")}
)


def shrunk(stacks: Stacks, pair: Pair, kind: str, *, tries: int = _TRIES) -> Pair | None:
    """The smallest pair found with a finding of that kind; None where the pair alone has none.

    What it says of a rotation may be refused of a cluster that is born, and goes then.
    """
    has, left, found = kind in kinds(stacks, pair), tries, True
    while found and left > 0:
        found = False
        for smaller in _smaller(pair):
            if not _is_accepted(stacks, smaller):
                continue
            left -= 1
            if kind in kinds(stacks, smaller):
                pair, found, has = smaller, True, True
                break
            if left <= 0:
                break
    return pair if has else None


def kinds(stacks: Stacks, pair: Pair) -> set[str]:
    """What is false about a pair on its own."""
    engine = stacks.new(pair.after)
    if pair.before is not None:
        first = of_pair(stacks, engine, Pair(pair.name, None, pair.before))
        if first.told is None:
            return set()
    return {one.kind for one in of_pair(stacks, engine, pair).findings()}


def _smaller(pair: Pair) -> Iterator[Pair]:
    """With less of an edit, then with less of what both configs say."""
    for name in sorted(pair.silent):
        yield dataclasses.replace(pair, silent=pair.silent - {name})
    before = pair.before
    if before is not None:
        for path in _differing(before, pair.after):
            yield dataclasses.replace(pair, after=_as_in(before, pair.after, path))
    for path in _paths(pair.after):
        if path not in _KEPT:
            less = None if before is None else _without(before, path)
            yield dataclasses.replace(pair, before=less, after=_without(pair.after, path))
    for path, lower in _fewer(pair.after):
        less = None if before is None else _set(before, path, lower)
        yield dataclasses.replace(pair, before=less, after=_set(pair.after, path, lower))


def _is_accepted(stacks: Stacks, pair: Pair) -> bool:
    known = None
    if pair.before is not None:
        then = accepted(stacks.folder, pair.before, None)
        if then is None:
            return False
        known = memory.read(json.loads(json.dumps(memory.of(then))))
    return accepted(stacks.folder, pair.after, known) is not None


def _paths(value: Mapping[str, object], above: Path = ()) -> Iterator[Path]:
    """Of every key, the outer ones first."""
    for key in value:
        yield (*above, key)
    for key, inner in value.items():
        if isinstance(inner, Mapping):
            yield from _paths(inner, (*above, key))


def _differing(before: Mapping[str, object], after: Mapping[str, object]) -> Iterator[Path]:
    for path in dict.fromkeys((*_paths(before), *_paths(after))):
        if _get(before, path) != _get(after, path):
            yield path


def _fewer(config: Config) -> Iterator[tuple[Path, object]]:
    """Smaller pools."""
    pools = config["pools"]
    assert isinstance(pools, dict)
    for name, pool in pools.items():
        if isinstance(pool.get("count"), int) and pool["count"] > 1:
            yield ("pools", name, "count"), pool["count"] - 1
        if isinstance(pool.get("hosts"), list) and len(pool["hosts"]) > 1:
            yield ("pools", name, "hosts"), pool["hosts"][:-1]


def _get(config: Mapping[str, object], path: Sequence[str]) -> object:
    value: object = config
    for key in path:
        if not isinstance(value, Mapping) or key not in value:
            return None
        value = value[key]
    return value


def _as_in(before: Config, after: Config, path: Path) -> Config:
    """The edit without what it changes there."""
    was = _get(before, path)
    return _without(after, path) if was is None else _set(after, path, was)


def _without(config: Config, path: Path) -> Config:
    out = copy.deepcopy(config)
    inner = _get(out, path[:-1])
    if isinstance(inner, dict):
        inner.pop(path[-1], None)
    return out


def _set(config: Config, path: Path, value: object) -> Config:
    out = copy.deepcopy(config)
    inner = _get(out, path[:-1])
    if isinstance(inner, dict):
        inner[path[-1]] = copy.deepcopy(value)
    return out
