"""What is wrong with a config, for a person: where, the value, the reason, the fix."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from stacks.config import redaction


class Problem(NamedTuple):
    """One thing to fix: config path such as `pools.worker.count`, and the text."""

    path: str
    text: str


class SpecError(ValueError):
    """Every problem of one stack's config, as (config path, what to do) pairs."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(f"{path}: {text}" for path, text in problems))


def dotted(loc: Sequence[str | int]) -> str:
    """`("pools", "worker", "taints", 0, "key")` as `pools.worker.taints[0].key`."""
    out = ""
    for part in loc:
        if isinstance(part, int):
            out += f"[{part}]"
        else:
            # A key that is not a plain word is quoted, for a path must stay one line
            # that can be read.
            word = part if part.replace("-", "").replace("_", "").isalnum() else json.dumps(part)
            out += f".{word}" if out else word
    return out or "config"


def in_order(found: Iterable[Problem]) -> list[Problem]:
    """Each once, by path, `hosts[2]` before `hosts[10]`."""
    return sorted(set(found), key=lambda problem: (_natural(problem.path), problem.text))


def _natural(text: str) -> list[tuple[int, str]]:
    parts = re.split(r"([0-9]+)", text)
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]


def unrelated(late: Iterable[Problem], *, to: Iterable[Problem]) -> list[Problem]:
    """Those of `late` that are not about a path above, at or below one in `to`.

    Which nodes there are follows from the pools: with a wrong one, nothing is said about `nodes`.
    """
    known = {_steps(path) for path, _ in to}
    if names_are_unsure(to):
        known.add(("nodes",))
    above = {steps[:length] for steps in known for length in range(1, len(steps) + 1)}
    return [
        problem
        for problem in late
        for steps in [_steps(problem.path)]
        if steps not in above
        and not any(steps[:length] in known for length in range(1, len(steps) + 1))
    ]


def names_are_unsure(found: Iterable[Problem]) -> bool:
    """Whether something is wrong by which it is decided which nodes there are."""
    return any(_decides_names(_steps(path)) for path, _ in found)


def _steps(path: str) -> tuple[str, ...]:
    return tuple(path.replace("[", ".[").split("."))


def _decides_names(steps: tuple[str, ...]) -> bool:
    """Something of a pool by which it has these nodes and no others."""
    if steps[0] != "pools" or len(steps) <= 2:
        return steps[0] == "pools"
    if steps[2] == "hosts":
        return len(steps) <= 4 or steps[4] == "name"
    return steps[2] in ("count", "hostsFile", "roles")


def shown(value: object) -> str:
    """A value as in JSON, on one line, without secrets, shortened to 60 characters."""
    text = json.dumps(redaction.of_value(value), default=str)
    return text if len(text) <= 60 else text[:57] + "..."
