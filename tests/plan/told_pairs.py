"""Pairs of configs, a previous one and an edit of it: drawn ones, and what an engine makes of them."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from stacks import load
from stacks.cluster.plan import Plan
from stacks.config.problems import SpecError
from stacks.edits import memory, silence, transition
from stacks.edits.transition import TransitionError
from stacks.explain import report
from stacks.order.difference import edit
from tests.fuzz import clusters, edits
from tests.fuzz.clusters import Config
from tests.fuzz.dice import Dice
from tests.plan.recording import Engine
from tests.plan.registration import Run
from tests.plan.settled import Stacks
from tests.plan.told import Told

_FUZZ = Path(__file__).parents[1] / "fuzz"
_BYTES = 2 * clusters.BYTES
_MOST = 16  # nodes: what is told of a bigger cluster is the same, and the engine takes its time


@dataclass(frozen=True, slots=True)
class Pair:
    name: str
    before: Config | None  # None: nothing was there
    after: Config
    silent: frozenset[str] = frozenset()  # whose SSH servers do not answer when the edit begins


def drawn(seed: int) -> Iterator[Pair]:
    """Pairs without end that are not refused, the same ones every time; one in eight is a birth."""
    source, number = random.Random(seed), 0  # noqa: S311 (no secret)
    while True:
        number += 1
        dice = Dice(source.randbytes(_BYTES))
        raw = _there(clusters.accepted(dice))
        edited = copy.deepcopy(raw)
        edits.applied(dice, edited)
        pair = Pair(f"seed {seed}, pair {number}", raw, _there(edited))
        if number % 8 == 0:
            pair = Pair(pair.name, None, raw)
        if _is_accepted(pair):
            yield Pair(pair.name, pair.before, pair.after, _silent(pair, number))


def _silent(pair: Pair, number: int) -> frozenset[str]:
    """In every other edit the first master, and a worker; who is behind something is not asked."""
    then = _planned(pair.before) if pair.before is not None else None
    if then is None or number % 2 or not (then.local or then.nodes[0].ssh):
        return frozenset()
    workers = [node.name for node in then.workers[:1]]
    first = [node.name for node in then.masters[:1]] if len(then.masters) > 1 else []
    silent = frozenset([*first, *workers])
    known = _remembered(then)
    plan = _planned(pair.after, known)
    try:
        transition.check(known, _seen(known, plan, silent))
    except TransitionError:
        return frozenset()
    return silent


def _seen(known: memory.Memory, plan: Plan, silent: frozenset[str]) -> Plan:
    runs = edit(known, plan)
    asked = silence.doors(silence.asked(known, plan), dict.fromkeys(silent, ("", 22)))
    return silence.seen(known, plan, silent & {*asked}, runs.dialled)


def told(stacks: Stacks, pair: Pair) -> Told:
    """The change plan of a pair, and what the engine changes after the previous one was applied."""
    engine = stacks.new(pair.before or pair.after)
    (engine.folder / "tests").mkdir(exist_ok=True)
    if not (engine.folder / "tests/fuzz").exists():
        (engine.folder / "tests/fuzz").symlink_to(_FUZZ)
    then = _planned(pair.before) if pair.before is not None else None
    known = _remembered(then) if then else None
    plan = _planned(pair.after, known)
    said = report.report(known, plan, transition.check(known, plan))
    if pair.silent and known and not said.is_empty:
        plan = _seen(known, plan, pair.silent)
        said = report.report(known, plan, transition.check(known, plan))
    if pair.before is not None:
        _up(engine, pair.before)
    stacks.new(
        pair.after
    )  # another bundle lies in the checkout: machines of another architecture come
    engine.silent = pair.silent
    run = _up(engine, pair.after)
    return Told(known.plan if known else None, plan, said, run)


def _up(engine: Engine, config: Config) -> Run:
    doors = config.get("frontDoors")
    zone = doors.get("zone") if isinstance(doors, Mapping) else None
    if zone and zone.get("id"):
        engine.zones = {**engine.zones, zone["id"]: (zone["domain"], zone.get("private", False))}
    return engine.up(config)


def _there(raw: Config) -> Config:
    """Without what names files of this computer: drawn ones are on none."""
    addons = raw.get("addons")
    if isinstance(addons, dict):
        for addon in addons.values():
            listed = addon.get("manifests") or []
            addon["manifests"] = [path for path in listed if "none" not in path]
        raw["addons"] = {name: one for name, one in addons.items() if one["manifests"]}
    raw.pop("mirror", None)
    machines = raw["machines"]
    ssh = machines.get("ssh") if isinstance(machines, dict) else None
    if isinstance(ssh, dict):
        ssh.pop("privateKeyFile", None)
        ssh["agent"] = True
        if isinstance(ssh.get("bastion"), dict):
            ssh["bastion"].pop("privateKeyFile", None)
    return raw


def _is_accepted(pair: Pair) -> bool:
    try:
        plan = _planned(pair.after)
        then = _planned(pair.before) if pair.before is not None else None
        if then:
            transition.check(None, then)
        transition.check(_remembered(then) if then else None, plan)
    except (SpecError, TransitionError):
        return False
    return max(len(one.nodes) for one in (plan, then) if one) <= _MOST


def _planned(raw: Config, known: memory.Memory | None = None) -> Plan:
    return load.planned(load.load(raw, read_keys=False), known)


def _remembered(plan: Plan) -> memory.Memory:
    return memory.read(json.loads(json.dumps(memory.of(plan))))
