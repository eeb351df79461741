"""Lives of clusters that are drawn: a birth, then edit after edit, each told and done on what the one before it left.

Every other life has edits of any kind; the others walk: machines come and go and change their states. One update
makes one pair. A config is never applied only to have something before another one.
"""

from __future__ import annotations

import copy
import random
import traceback
from collections.abc import Iterator
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path

from stacks import load
from stacks.cluster.plan import Plan
from stacks.config.problems import SpecError
from stacks.edits import silence, transition
from stacks.edits.memory import Memory
from stacks.edits.transition import TransitionError
from stacks.order.difference import Edit, edit
from tests.fuzz import clusters, edits, likely
from tests.fuzz.clusters import Config
from tests.fuzz.dice import Dice
from tests.plan import told_files
from tests.plan.providers import Made
from tests.plan.recording import Engine
from tests.plan.settled import Stacks
from tests.plan.told import Finding, Told
from tests.plan.told_pairs import Pair, remembered, updated

UPDATES = 8  # of one life: the birth, and edits
_FEW = 8  # nodes: there is more in a small cluster for the time it takes
_MOST = 16  # nodes: what is told of a bigger cluster is the same, and the engine takes its time
# Keys and certificates that lives have had: nobody compares those of two clusters.
_MADE: Made = {}
_TRIES = 200  # of an edit that is not refused


@dataclass(frozen=True, slots=True)
class Update:
    """One of a life: what was applied before it (None: nothing), and what it told and did."""

    pair: Pair
    told: Told | None  # None: the program broke
    broken: Finding | None = None

    def findings(self) -> list[Finding]:
        """What is false about it."""
        return [self.broken] if self.broken else self.told.findings() if self.told else []


def of_pair(stacks: Stacks, engine: Engine, pair: Pair) -> Update:
    """The next update of a stack."""
    try:
        return Update(pair, updated(stacks, engine, pair.after, pair.silent))
    except Exception as error:
        kind = f"broken: {type(error).__name__}"
        return Update(pair, None, Finding(kind, "".join(traceback.format_exception(error)[-3:])))


def life(stacks: Stacks, seed: int, number: int) -> Iterator[Update]:
    """The updates of one cluster, the same ones every time."""
    source = random.Random(f"{seed} {number}")  # noqa: S311 (no secret)
    name = f"seed {seed}, life {number}"
    told_files.lay(stacks.folder)
    config = _born(stacks.folder, source)
    engine = stacks.new(config)
    engine.made = _MADE
    pair = Pair(f"{name}, birth", None, config)
    yield of_pair(stacks, engine, pair)
    for place in range(1, UPDATES):
        known = remembered(engine)
        if known is None:
            return
        found = _edited(stacks.folder, source, config, known, walks=bool(number % 2))
        if found is None:
            return
        edited, silent = found
        pair = Pair(f"{name}, edit {place}", config, edited, silent)
        update = of_pair(stacks, engine, pair)
        yield update
        if update.told is None:
            return
        config = edited


def _born(folder: Path, source: random.Random) -> Config:
    while True:
        dice = Dice(source.randbytes(2 * clusters.BYTES))
        config = clusters.accepted(dice)
        likely.network(dice, config)
        config = told_files.there(config)
        plan = accepted(folder, config, None)
        if plan is not None and (len(plan.nodes) <= _FEW or dice.chance(20)):
            return config


def _edited(
    folder: Path, source: random.Random, config: Config, known: Memory, *, walks: bool
) -> tuple[Config, frozenset[str]] | None:
    """An edit that is not refused, and who is silent; None where none was found.

    `walks`: of what happens to machines. It meets more than settings do.
    """
    for _ in range(_TRIES):
        dice = Dice(source.randbytes(clusters.BYTES))
        edited = copy.deepcopy(config)
        if dice.chance(3):
            edits.reorder(edited)
        elif walks:
            likely.walked(dice, edited)
        elif dice.chance(60):
            likely.applied(dice, edited)
        else:
            edits.applied(dice, edited)
        edited = told_files.there(edited)
        plan = accepted(folder, edited, known)
        if plan is None:
            continue
        runs = edit(known, plan)
        # Much of what is drawn changes nothing: that nothing is told of it is seen often enough.
        then = known.plan.spec if known.plan else None
        if runs.differences or dice.chance(20 if plan.spec == then else 50):
            return edited, _silent(dice, known, plan, runs)
    return None


def accepted(folder: Path, config: Config, known: Memory | None) -> Plan | None:
    """The plan, where the program would not refuse it."""
    try:
        with chdir(folder):
            plan = load.planned(load.load(config), known)
        transition.check(known, plan)
    except (SpecError, TransitionError):
        return None
    return plan if len(plan.nodes) <= _MOST else None


def _silent(dice: Dice, known: Memory, plan: Plan, runs: Edit) -> frozenset[str]:
    """At every other time a master of several, or a worker, or both: of those who are asked."""
    if dice.chance(50):
        return frozenset()
    asked = silence.asked(known, plan)
    masters = [node.name for node in asked if node.is_master and not node.is_worker]
    workers = [node.name for node in asked if node.is_worker and not node.is_master]
    chosen = [dice.one_of(workers)] if workers and dice.chance(60) else []
    if len(masters) > 1 and dice.chance(60):
        chosen.append(masters[0] if dice.chance(60) else dice.one_of(masters))
    silent = frozenset(chosen)
    try:
        transition.check(known, silence.seen(known, plan, silent, runs.dialled))
    except TransitionError:
        return frozenset()
    return silent
