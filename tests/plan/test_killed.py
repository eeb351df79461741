"""The engine is killed at every step of an edit of the control plane; the next update continues, or back, as if it had not been."""

from __future__ import annotations

import pytest

from tests.plan.graph import Graph
from tests.plan.killed import Turns, Up, differences, end
from tests.plan.recording import Engine
from tests.plan.registration import Change
from tests.plan.settled import Stacks, assert_exactly
from tests.unit.configs import adopted, host


def of(*masters: int, **states: object) -> dict[str, object]:
    """These masters, and one worker; the smallest cluster in which an edit has all its steps."""
    return adopted(
        {
            "pools.master.hosts": [host("master", ordinal) for ordinal in masters],
            "pools.worker.hosts": [host("worker", 1)],
            "nodes": {name.replace("_", "-"): state for name, state in states.items()},
        }
    )


EDITS = {
    "from one master to three": (of(1), of(1, 2, 3)),
    "the bootstrap master leaves": (of(1, 2, 3), of(2, 3)),
    "a dead master is taken out": (of(1, 2, 3), of(1, 2, 3, master_2={"state": "lost"})),
    "the bootstrap master is recreated": (of(1, 2, 3), of(1, 2, 3, master_1={"generation": 2})),
}
# Who was taken out first, because he is dead or another one now, is not brought back by an edit.
GOING_FIRST = ("a dead master is taken out", "the bootstrap master is recreated")


@pytest.fixture(scope="module", params=EDITS)
def up(request: pytest.FixtureRequest, stacks: Stacks) -> Up:
    start, edit = EDITS[str(request.param)]
    engine, _ = stacks.settled(start)
    return Up.of(engine, start, edit)


def test_undisturbed_no_two_members_or_masters_are_in_work_at_once(up: Up) -> None:
    assert len(set(up.turns.nodes.values())) >= 2, "the edit has to touch several"
    assert up.turns.at_once() == []


@pytest.mark.slow
def test_killed_at_every_step_the_next_up_ends_the_same(up: Up) -> None:
    wanted = end(up.after)
    assert len(up.run.changes) > 10
    for change in up.run.changes:
        engine = up.killed_at(change)
        left = engine.fork()
        again = engine.up(up.config)
        assert differences(wanted, end(engine)) == [], f"killed at {change}"
        _assert_one_at_a_time(change, Turns(again, left), up)


@pytest.mark.slow
@pytest.mark.parametrize("up", [name for name in EDITS if name not in GOING_FIRST], indirect=True)
def test_killed_when_somebody_has_joined_or_left_a_revert_goes_back(up: Up) -> None:
    """Nothing but the list of nodes takes out who has joined, so it must run again wherever the edit was interrupted."""
    wanted = end(up.before, asked=False)
    start = up.config_before
    for change in up.run.changes:
        if change.name not in up.turns.nodes:
            continue
        engine = up.killed_at(change)
        again = engine.up(start)
        assert differences(wanted, end(engine, asked=False)) == [], f"killed at {change}"
        assert "prod-nodes" in {found.name for found in again.changes}, f"killed at {change}"


def test_an_edit_that_breaks_off_is_known_before_anybody_joins_or_leaves(up: Up) -> None:
    graph = Graph(up.run)
    for name in up.turns.nodes:
        assert "prod-acceptance-attempt" in graph.before(name), name


def _assert_one_at_a_time(killed: Change, again: Turns, up: Up) -> None:
    """Also with what the killed run has left behind on a node, where it may go on until its end."""
    assert again.at_once() == [], f"killed at {killed}"
    if killed.name in up.turns.nodes:
        assert killed.name in again.nodes, f"{killed} was cut off, and is not done again"
        assert again.before_it(killed.name) == [], f"{killed.name} may still be in work"


def test_the_end_is_settled(up: Up) -> None:
    engine: Engine = up.after.fork()
    assert_exactly(engine.up(up.config), [])
