"""Pairs of configs, a previous one and an edit of it, and what an engine makes of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from stacks.edits import memory
from stacks.edits.memory import Memory
from tests.fuzz.clusters import Config
from tests.plan.recording import Engine
from tests.plan.settled import Stacks
from tests.plan.told import Told
from toolchain.values import plain


@dataclass(frozen=True, slots=True)
class Pair:
    name: str
    before: Config | None  # None: nothing was there
    after: Config
    silent: frozenset[str] = frozenset()  # whose SSH servers do not answer when the edit begins


def told(stacks: Stacks, pair: Pair) -> Told:
    """The change plan of a pair, and what the engine changes after the previous one was applied."""
    engine = stacks.new(pair.after)
    if pair.before is not None:
        updated(stacks, engine, pair.before)
    return updated(stacks, engine, pair.after, pair.silent)


def updated(
    stacks: Stacks, engine: Engine, config: Config, silent: frozenset[str] = frozenset()
) -> Told:
    """What the program tells of one update of a stack, and what the engine does. Raises RunError."""
    stacks.brought(config)
    doors = config.get("frontDoors")
    zone = doors.get("zone") if isinstance(doors, Mapping) else None
    if zone and zone.get("id"):
        engine.zones = {**engine.zones, zone["id"]: (zone["domain"], zone.get("private", False))}
    known = remembered(engine)
    engine.silent, engine.said = silent, None
    run = engine.up(config)
    said = engine.said
    assert said is not None, "the program registered something and told nothing"
    return Told(known.plan if known else None, said.plan, said.said, run)


def remembered(engine: Engine) -> Memory | None:
    """What the stack knows of its last success."""
    text = plain(engine.outputs.get("applied"))
    return memory.read(json.loads(text)) if isinstance(text, str) else None
