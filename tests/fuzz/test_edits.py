"""Any edit of a running cluster is refused with its reasons, or passes through safe steps only."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from hypothesis import given, reject

from stacks import load
from stacks.cluster.plan import Plan
from stacks.config.problems import SpecError
from stacks.edits import memory
from stacks.edits.memory import Memory
from stacks.edits.transition import TransitionError
from tests.fuzz import edits, invariants
from tests.fuzz.clusters import Config
from tests.fuzz.counted import counted


@pytest.mark.usefixtures("quick_yaml")
def test_any_edit_is_refused_or_safe(examples: int) -> None:
    seen: Counter[str] = Counter()

    @counted(examples)
    @given(edits.pairs())
    def each(pair: tuple[Config, Config]) -> None:
        raw, edited = pair
        try:
            before = remembered(planned(raw))
        except SpecError:
            reject()
        seen[outcome(before, raw, edited)] += 1

    each()
    assert seen["safe"] > examples / 4
    assert seen["dangerous"] > examples / 10
    assert seen["wrong"] > examples / 20


@pytest.mark.usefixtures("quick_yaml")
def test_the_order_of_what_is_remembered_by_name_says_nothing(examples: int) -> None:
    """The engine sorts keys of an output: what has an order is remembered as a list."""
    several = Counter[bool]()

    @counted(examples)
    @given(edits.pairs())
    def each(pair: tuple[Config, Config]) -> None:
        try:
            made = planned(pair[0])
        except SpecError:
            reject()
        held = memory.of(made)
        as_engine = memory.read(json.loads(json.dumps(held, sort_keys=True)))
        assert as_engine == memory.read(json.loads(json.dumps(held)))
        assert as_engine.plan is not None
        assert as_engine.plan.addons == made.addons
        several[any(len(addon.files) > 1 for addon in made.addons)] += 1

    each()
    assert several[True], several


def outcome(before: Memory, raw: Config, edited: Config) -> str:
    try:
        after = planned(edited)
    except SpecError as error:
        invariants.of_problems(error.problems, edited)
        return "wrong"
    try:
        invariants.of_accepted_edit(before, after)
    except TransitionError as error:
        invariants.of_problems(error.problems, edited, raw)
        return "dangerous"
    return "safe"


def planned(raw: Config) -> Plan:
    return load.planned(load.load(raw, read_keys=False))


def remembered(made: Plan) -> Memory:
    return memory.read(json.loads(json.dumps(memory.of(made))))
