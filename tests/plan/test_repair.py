"""What repairs a cluster is locked out by nothing: not by leafs that ran out, nor by what an update left out."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from tests.plan.graph import Graph
from tests.plan.providers import COMMAND
from tests.plan.recording import Engine, RunError
from tests.plan.registration import Run
from tests.plan.settled import Stacks, assert_exactly
from tests.unit.configs import lab
from toolchain.tls import certificates
from toolchain.values import Properties, Value, plain

MASTERS = ["master-1", "master-2", "master-3"]
LOST = {"nodes": {"master-3": {"state": "lost"}}, "pools.master.count": 4}
SEPARATE = {"pools.etcd": {"roles": ["etcd"], "count": 3}, "pools.master.roles": ["master"]}


def names(run: Run) -> set[str]:
    return {str(change) for change in run.changes}


def up(engine: Engine, config: Mapping[str, object], failing: str = "") -> Run | None:
    """The run; None where it failed as it was made to."""
    if not failing:
        return engine.up(config)
    with pytest.raises(RunError, match="made to fail"):
        engine.up(config, failing=[failing])
    return None


@pytest.fixture
def expired(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever was made before now has run out."""
    now = f"{datetime.now(UTC) + timedelta(days=370):%Y-%m-%dT%H:%M:%SZ}"

    def due(state: Properties, _: Value) -> bool:
        return str(plain(state.get("validityEndTime", "9"))) < now

    monkeypatch.setattr(certificates, "_due", due)


@pytest.mark.usefixtures("expired")
@pytest.mark.parametrize(
    ("config", "nodes"),
    [({}, MASTERS), ({"pools.master.count": 1}, MASTERS[:1]), (SEPARATE, MASTERS)],
    ids=["three", "one", "etcd elsewhere"],
)
def test_leafs_that_ran_out_are_placed_everywhere_before_anything_waits_for_them(
    stacks: Stacks, config: dict[str, object], nodes: list[str]
) -> None:
    engine, born = stacks.settled(lab(config))
    engine.made = {}
    up(engine, lab(config), "dev-master-1-master")
    before = {command.name: command.text("create") for command in born.commands}
    changed = {
        resource.name
        for resource in engine.resources.values()
        if resource.name in before and resource.text("create") != before[resource.name]
    }
    members = ["etcd-1", "etcd-2", "etcd-3"] if config == SEPARATE else nodes
    assert {f"dev-{node}-etcd-keys" for node in members} <= changed
    assert {f"dev-{node}-master-keys" for node in nodes} <= changed


@pytest.mark.parametrize("config", [{}, {"pools.master.count": 1}, SEPARATE])
def test_nothing_that_asks_etcd_or_the_api_comes_before_the_leafs(
    stacks: Stacks, config: dict[str, object]
) -> None:
    engine, _ = stacks.settled(lab(config))
    graph = Graph(engine.up(lab(config)))
    leafs = {name for name in graph.resources if name.endswith(("-etcd-keys", "-master-keys"))}
    before = set().union(*(graph.before(name) for name in leafs))
    assert not [name for name in before - leafs if graph.resources[name].type == COMMAND]
    for name in ("snapshot", "retire", "nodes", "gate"):
        assert leafs <= graph.before(f"dev-{name}")


def test_a_node_that_is_lost_a_second_time_is_taken_out_again(stacks: Stacks) -> None:
    engine, _ = stacks.settled(lab())
    up(engine, lab(LOST), "dev-gate")
    engine.up(lab({"converge.generation": 2}))  # taken back; the member has joined again
    assert "~ dev-retire" in names(engine.up(lab({**LOST, "converge.generation": 2})))


TRIES = ["dev-retire", "dev-master-4-master", "dev-gate"]


@pytest.mark.parametrize("tries", [*itertools.product(TRIES), *itertools.product(TRIES, TRIES)])
def test_whatever_came_to_nothing_before_who_is_lost_is_taken_out(
    stacks: Stacks, tries: tuple[str, ...]
) -> None:
    """Lost, failed there, taken back, in any order; then lost once more."""
    engine, _ = stacks.settled(lab())
    for number, failing in enumerate(tries, start=2):
        up(engine, lab({**LOST, "converge.generation": number - 1}), failing)
        engine.up(lab({"converge.generation": number}))
    last = {**LOST, "converge.generation": len(tries) + 1}
    run = engine.up(lab(last))
    assert "~ dev-retire" in names(run)
    assert "master-3=1:lost" in run.named("dev-retire").text("stdin")
    assert_exactly(engine.up(lab(last)), [])


def test_what_runs_once_runs_again_for_no_change_at_all(stacks: Stacks) -> None:
    """A new version of a provider may give every command one more input."""
    engine, run = stacks.settled(lab())
    once = {command.name for command in run.commands if "create" in command.ignores}
    assert {"dev-master-1-etcd-found", "dev-worker-1-join", "dev-wave-0", "dev-retire"} <= once
    engine.resources = {
        urn: replace(
            one, inputs={**one.inputs, "another": "input"} if one.name in once else one.inputs
        )
        for urn, one in engine.resources.items()
    }
    assert_exactly(engine.up(lab()), [])


def until_the_next_day_ends(text: str, name: str, made: tuple[float, float]) -> bool:
    """Whether a text says so once; it was made between two times, perhaps of two days."""
    (until,) = [line for line in text.splitlines() if line.startswith(f"{name}=")]
    end = int(until.partition("=")[2])
    return end - made[0] > 24 * 3600 and end - made[1] <= 48 * 3600


def born(stacks: Stacks) -> tuple[Run, tuple[float, float]]:
    began = time.time()
    run = stacks.new(lab()).up(lab())
    return run, (began, time.time())


def test_a_text_that_may_found_a_cluster_says_until_when(stacks: Stacks) -> None:
    run, made = born(stacks)
    text = run.named("dev-master-1-etcd-found").text("stdin")
    assert until_the_next_day_ends(text, "BOOTSTRAP_UNTIL", made)


def test_whatever_keeps_its_text_does_nothing_by_it_on_a_later_day(stacks: Stacks) -> None:
    """No ignore_changes keeps a provider from running a command again: a new default is enough."""
    run, made = born(stacks)
    keeping = [command for command in run.commands if "stdin" in command.ignores]
    assert keeping
    for command in keeping:
        if command.name.endswith("-preflight"):
            continue  # changes nothing, and is made for machines that are nodes already
        assert until_the_next_day_ends(command.text("stdin"), "UNTIL", made), command.name


@pytest.mark.parametrize("left_out", [["dev-gate"], ["dev-nodes"], ["dev-nodes", "dev-gate"]])
def test_an_up_that_leaves_out_the_gate_is_no_success(stacks: Stacks, left_out: list[str]) -> None:
    """--target and --exclude: the engine gives back what the command was, and stores the outputs of the stack."""
    engine, _ = stacks.settled(lab())
    before = engine.outputs["applied"]
    more = lab({"pools.worker.count": 3})
    engine.up(more, left_out=left_out)
    assert engine.outputs["applied"] == before
    engine.up(more)
    assert engine.outputs["applied"] != before
    assert_exactly(engine.up(more), [])


@pytest.mark.parametrize(
    "edit", [{"kubelet.maxPods": 60}, {"etcd.quotaBackendGib": 4}, {"rollout.parallel": 2}]
)
def test_a_success_is_remembered_whatever_was_edited(
    stacks: Stacks, edit: dict[str, object]
) -> None:
    engine, _ = stacks.settled(lab())
    before = engine.outputs["applied"]
    engine.up(lab(edit))
    assert engine.outputs["applied"] != before


def test_a_success_remembers_when_the_first_certificates_end_and_previews_say_it(
    stacks: Stacks,
) -> None:
    engine, _ = stacks.settled(lab())
    known = json.loads(str(plain(engine.outputs["applied"])))["certificates"]
    assert [one["kind"] for one in known] == ["leaf", "ca"]
    year = datetime.now(UTC) + timedelta(days=365)
    assert abs(datetime.fromisoformat(known[0]["ends"]) - year) < timedelta(days=1)
    run = engine.up(lab())
    said = " ".join(run.messages[0].split())
    assert f"leaf {known[0]['name']} on " in said
    assert "(364 days left)" in said or "(365 days left)" in said
