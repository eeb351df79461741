"""A run that was interrupted, and what the next one does: retry, revert, go on."""

from __future__ import annotations

import pytest

from tests.plan.recording import Engine, RunError
from tests.plan.registration import Run
from tests.plan.settled import Stacks, assert_exactly
from tests.unit.configs import lab


def fails(engine: Engine, config: dict[str, object], *names: str) -> None:
    with pytest.raises(RunError, match="made to fail"):
        engine.up(config, failing=names)


def names(run: Run) -> set[str]:
    return {str(change) for change in run.changes}


@pytest.mark.parametrize(
    "name",
    [
        "dev-master-1-node",
        "dev-master-1-etcd-found",
        "dev-master-2-etcd",
        "dev-master-3-master",
        "dev-worker-1-join",
        "dev-gate",
    ],
)
def test_a_first_up_that_broke_off_is_finished_by_the_next(stacks: Stacks, name: str) -> None:
    engine = stacks.new(lab())
    fails(engine, lab(), name)
    run = engine.up(lab())
    assert f"+ {name}" in names(run)
    whole = {r.name for r in stacks.settled(lab())[1].custom}
    assert {r.name for r in run.custom} == whole
    assert_exactly(engine.up(lab()), [])


@pytest.mark.parametrize(
    ("edit", "failing"),
    [
        ({"kubelet.maxPods": 60}, "dev-worker-1-node"),
        ({"kubelet.maxPods": 60}, "dev-master-2-node"),
        ({"etcd.quotaBackendGib": 4}, "dev-master-2-etcd"),
        ({"controlPlane.apiServerArgs": {"v": "4"}}, "dev-master-2-master"),
        ({"network.proxyMode": "iptables"}, "dev-addon-kube-proxy"),
        ({"pools.worker.labels": {"a": "b"}}, "dev-nodes"),
        ({"pools.worker.labels": {"a": "b"}}, "dev-gate"),
    ],
)
def test_a_change_that_broke_off_is_undone_by_a_revert(
    stacks: Stacks, edit: dict[str, object], failing: str
) -> None:
    """The engine keeps the inputs of the last success: without a stamp it would see no change."""
    engine, _ = stacks.settled(lab())
    fails(engine, lab(edit), failing)
    reverted = engine.up(lab())
    assert f"~ {failing}" in names(reverted)
    assert_exactly(engine.up(lab()), [])


def test_a_change_that_broke_off_is_tried_again(stacks: Stacks) -> None:
    engine, _ = stacks.settled(lab())
    edit = lab({"kubelet.maxPods": 60})
    fails(engine, edit, "dev-worker-1-node")
    assert "~ dev-worker-1-node" in names(engine.up(edit))
    assert_exactly(engine.up(edit), [])


def test_a_worker_that_failed_to_join_gets_a_fresh_token(stacks: Stacks) -> None:
    engine, first = stacks.settled(lab())
    more = lab({"pools.worker.count": 3})
    fails(engine, more, "dev-worker-3-join")
    run = engine.up(more)
    assert "+ dev-worker-3-join" in names(run)
    token = run.named("dev-join-token").text("stdin")
    assert token != first.named("dev-join-token").text("stdin")
    assert_exactly(engine.up(more), [])


def test_each_incarnation_joins_by_a_token_of_its_own(stacks: Stacks) -> None:
    """The list of nodes deletes the token: within the hour nobody may count on the one before."""
    engine, _ = stacks.settled(lab())
    tokens = []
    for generation in (1, 2):
        edit = {"pools.worker.count": 3, "nodes": {"worker-3": {"generation": generation}}}
        fails(engine, lab(edit), "dev-gate")
        tokens += [r.text("stdin") for r in engine.resources.values() if r.name == "dev-join-token"]
    assert len(set(tokens)) == 2


def test_a_worker_that_is_put_back_within_the_hour_gets_a_token_again(stacks: Stacks) -> None:
    engine, _ = stacks.settled(lab())
    for _ in range(2):
        engine.up(lab({"pools.worker.count": 1}))
        assert "~ dev-join-token" in names(engine.up(lab()))
        assert_exactly(engine.up(lab()), [])


def test_memory_is_kept_only_by_success(stacks: Stacks) -> None:
    engine, _ = stacks.settled(lab())
    before = engine.outputs["applied"]
    fails(engine, lab({"pools.worker.count": 3}), "dev-gate")
    assert engine.outputs["applied"] == before


def test_a_stack_without_success_may_still_be_changed_freely(stacks: Stacks) -> None:
    engine = stacks.new(lab())
    fails(engine, lab({"network.plugin": "none"}), "dev-master-1-master")
    engine.up(lab())
    assert_exactly(engine.up(lab()), [])


def test_a_refused_edit_registers_nothing(stacks: Stacks) -> None:
    engine, _ = stacks.settled(lab())
    resources = dict(engine.resources)
    with pytest.raises(RunError, match=r"cluster\.podCidr"):
        engine.up(lab({"cluster.podCidr": "10.32.0.0/16"}))
    assert engine.resources == resources


def test_the_plan_in_words_is_among_the_engines_messages(stacks: Stacks) -> None:
    engine, born = stacks.settled(lab())
    assert born.messages[0].startswith("Plan for cluster dev, a new cluster\n")
    assert "3 masters, 3 etcd members" in born.messages[0]
    more = engine.up(lab({"pools.worker.count": 3}))
    assert "+ worker-3\n       make the machine" in more.messages[0]
    again = engine.up(lab({"pools.worker.count": 3}))
    assert "  Changes     nothing to do: the config is the one last applied." in again.messages[0]
