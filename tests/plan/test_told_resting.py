"""Machines that stay while they are out of use, decommissioned or silent: what happens on them and around them is told."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.plan.settled import Stacks
from tests.plan.told import counted
from tests.plan.told_pairs import Pair, told, updated
from tests.unit.configs import GONE, adopted, aws, edited, gcp, hcloud, host, lab

Edit = dict[str, object]
OUT: Edit = {"nodes": {"worker-1": {"state": "decommissioned"}}}
FEW: Edit = {"pools.master.count": 1, "pools.worker.count": 2}
MASTERS: Edit = {"pools.worker": GONE}
MASTER_OUT: Edit = {"nodes": {"master-2": {"state": "decommissioned"}}}
BEHIND: Edit = {"frontDoors.ingress": {}}
AGAIN: Edit = {"converge.generation": 2}
LABELS: dict[str, Edit] = {
    "gcp": {"machines.gcp.labels": {"team": "a"}},
    "aws": {"machines.aws.labels": {"team": "a"}},
    "hcloud": {"machines.hcloud.labels": {"team": "a"}},
}
CLOUDS = {"gcp": gcp, "aws": aws, "hcloud": hcloud}
EDITS: dict[str, tuple[Edit, Edit]] = {
    "a master goes": (MASTERS, MASTER_OUT),
    "a master comes back": (MASTERS | MASTER_OUT, {"nodes": GONE}),
    "a worker goes": (FEW | BEHIND, OUT),
    "a worker comes back": (FEW | BEHIND | OUT, {"nodes": GONE}),
    "one comes back as a new machine": (FEW | BEHIND | OUT, {"nodes": {"worker-1": {"generation": 2}}}),
    "one is deleted": (FEW | BEHIND | OUT, {"nodes": {"worker-1": {"state": "removed"}}}),
    "a front door comes": (FEW | OUT, BEHIND),
    "a front door goes": (FEW | OUT | BEHIND, {"frontDoors": GONE}),
}  # fmt: skip


@pytest.mark.parametrize("provider", CLOUDS)
@pytest.mark.parametrize("name", EDITS)
def test_what_a_cloud_has_of_them_is_told(stacks: Stacks, provider: str, name: str) -> None:
    start, edit = EDITS[name]
    before = CLOUDS[provider](start)
    edit_told = told(stacks, Pair(name, before, edited(before, edit)))
    assert edit_told.run.changes
    assert edit_told.findings() == []


@pytest.mark.parametrize("provider", CLOUDS)
def test_what_changes_about_them_alone_is_told(stacks: Stacks, provider: str) -> None:
    before = CLOUDS[provider](FEW | OUT)
    edit_told = told(stacks, Pair("labels", before, edited(before, LABELS[provider])))
    assert "~ prod-worker-1-machine" in map(str, edit_told.run.changes)
    assert edit_told.findings() == []


HERE = lab(FEW)
THERE = adopted(OUT)
KEPT = {
    "silent, and every phase runs again": (Pair("", HERE, edited(HERE, AGAIN), frozenset({"worker-1"})), "machine"),
    "out of use, and every phase runs again": (Pair("", edited(HERE, OUT), edited(HERE, OUT | AGAIN)), "machine"),
    "out of use, and reached otherwise": (Pair("", THERE, edited(THERE, {"machines.ssh.user": "admin"})), "decommission"),
}  # fmt: skip


@pytest.mark.parametrize("name", KEPT)
def test_what_happens_on_them_is_told(stacks: Stacks, name: str) -> None:
    pair, part = KEPT[name]
    edit_told = told(stacks, pair)
    assert any(change.name.endswith(f"worker-1-{part}") for change in edit_told.run.changes)
    assert edit_told.findings() == []
    assert "worker-1" in [node.name for wave in edit_told.report.waves for node in wave.nodes]


def test_what_happens_on_one_that_answers_again_is_told(stacks: Stacks) -> None:
    engine = stacks.new(HERE)
    updated(stacks, engine, HERE)
    updated(stacks, engine, edited(HERE, AGAIN), frozenset({"worker-1"}))
    back = updated(stacks, engine, edited(HERE, {"converge.generation": 3}))
    assert "~ dev-worker-1-machine" in map(str, back.run.changes)
    assert back.findings() == []


BEFORE_AGAIN: dict[str, Edit] = {
    "decommissioned": {"nodes": {"worker-1": {"state": "decommissioned"}}},
    "lost": {"nodes": {"worker-1": {"state": "lost"}}},
}


@pytest.mark.parametrize("was", BEFORE_AGAIN)
def test_a_given_machine_that_comes_back_is_looked_at_as_what_it_becomes(
    stacks: Stacks, was: str
) -> None:
    engine = stacks.new(adopted())
    updated(stacks, engine, adopted())
    updated(stacks, engine, adopted(BEFORE_AGAIN[was]))
    back = updated(stacks, engine, adopted({"nodes": {"worker-1": {"generation": 2}}}))
    assert back.findings() == []
    (asked,) = [change for change in back.run.changes if change.name == "prod-worker-1-preflight"]
    assert asked.after is not None
    assert "INCARNATION=2" in asked.after.text("stdin").replace("'", "")


LEAVE: Edit = {"machines.onRelease": "wipe"}


@pytest.mark.parametrize("with_", [{}, OUT], ids=["alone", "and one is decommissioned"])
def test_that_machines_will_leave_otherwise_is_told_of_each(stacks: Stacks, with_: Edit) -> None:
    edit_told = told(stacks, Pair("", adopted(), adopted(LEAVE | with_)))
    assert "~ prod-master-1-preflight" in map(str, edit_told.run.changes)
    assert edit_told.findings() == []


def test_another_rollout_is_told_where_a_master_alone_is_recreated(stacks: Stacks) -> None:
    edit: Edit = {"rollout.drain": {"when": "never"}, "nodes": {"master-1": {"generation": 2}}}
    edit_told = told(stacks, Pair("", lab(), lab(edit)))
    assert "rollout" in [wave.title for wave in edit_told.report.waves]
    assert edit_told.findings() == []


def test_that_the_first_master_is_back_is_told_once(stacks: Stacks) -> None:
    """The command that founded the cluster is of the first member, whoever that is."""
    out = lab({"nodes": {"master-1": {"state": "decommissioned"}}})
    back = told(stacks, Pair("", out, lab()))
    assert "- dev-master-2-etcd-found" in map(str, back.run.changes)
    assert back.findings() == []


@pytest.mark.parametrize("make", [lab, adopted])
def test_one_that_is_given_up_on_its_first_day_is_told(
    stacks: Stacks, make: Callable[[Edit], Edit]
) -> None:
    """The line came with the host: nobody was ever there by that name, for all that the stack knows."""
    edit = (
        {"pools.worker.count": 3}
        if make is lab
        else {"pools.worker.hosts": [host("worker", n) for n in (1, 2, 3)]}
    )
    given_up = told(
        stacks, Pair("", make({}), make(edit | {"nodes": {"worker-3": {"state": "lost"}}}))
    )
    assert given_up.findings() == []
    born = told(stacks, Pair("", None, make(edit | {"nodes": {"worker-3": {"state": "lost"}}})))
    assert born.findings() == []


def test_an_absent_member_counts_as_down_where_another_joins(stacks: Stacks) -> None:
    apart: Edit = {"pools.etcd": {"roles": ["etcd"], "count": 3}, "pools.master.roles": ["master"]}
    absent: Edit = {"nodes": {"etcd-1": {"state": "absent"}}}
    joins = told(stacks, Pair("", lab(apart), lab(apart | absent | {"pools.etcd.count": 4})))
    assert joins.findings() == []
    said = [text for who in joins.report.headline.disruption for text in who.notices]
    assert any("one more failure ends its quorum (3 of 4" in text for text in said)


def test_a_worker_that_is_back_within_the_hour_gets_the_token_once_more(stacks: Stacks) -> None:
    """The update that made its machine anew had the same one, and deleted it at its end."""
    anew: Edit = {"nodes": {"worker-1": {"generation": 2}}}
    engine = stacks.new(lab())
    updated(stacks, engine, lab())
    updated(stacks, engine, lab(anew))
    # How a change reaches nodes is nothing that they become, so the plan's digest stays.
    told_others: Edit = anew | {"hooks": {"url": "https://hooks.example.com/nodes"}}
    updated(stacks, engine, lab(told_others), frozenset({"worker-1"}))
    back = updated(stacks, engine, lab(told_others))
    assert "~ dev-join-token" in map(str, back.run.changes)
    assert back.findings() == []


def test_a_member_that_is_back_has_its_turn_before_others_restart(stacks: Stacks) -> None:
    """Of four members one counts as down until its turn: no restart before it would have a quorum."""
    four: Edit = {"pools.master.count": 4}
    absent: Edit = {"nodes": {"master-3": {"state": "absent"}}}
    engine = stacks.new(lab(four))
    updated(stacks, engine, lab(four))
    updated(stacks, engine, lab(four | absent))
    back = updated(stacks, engine, lab(four | {"etcd.quotaBackendGib": 5}))
    said = [text for who in back.report.headline.disruption for text in who.notices]
    assert not [text for text in said if "quorum" in text], said
    assert "~ dev-master-1-etcd" in map(str, back.run.changes)
    assert back.findings() == []


def test_numbers_of_gates_are_read_as_they_are_spoken() -> None:
    assert [*counted("0 to 4 and 7")] == [0, 1, 2, 3, 4, 7]
    assert [*counted("3, 5 and 6")] == [3, 5, 6]


def test_one_that_never_was_there_is_no_reason_to_save_etcd(stacks: Stacks) -> None:
    """Nothing is taken out with it, and a snapshot of the same plan is there from the edit before."""
    anew: Edit = {"nodes": {"worker-1": {"generation": 2}}}
    engine = stacks.new(lab())
    updated(stacks, engine, lab())
    updated(stacks, engine, lab(anew))
    lost: Edit = {
        "pools.worker.count": 3,
        "nodes": {"worker-1": {"generation": 2}, "worker-3": {"state": "lost"}},
    }
    assert updated(stacks, engine, lab(lost)).findings() == []


@pytest.mark.parametrize("name", ["worker-1", "master-2", "etcd-2", "edge-2"])
def test_of_a_given_machine_that_was_absent_its_keys_alone_are_forgotten(
    stacks: Stacks, name: str
) -> None:
    there: Edit = {
        f"pools.{pool}": {"roles": [role], "hosts": [host(pool, n) for n in (1, 2, 3)]}
        for pool, role in (("etcd", "etcd"), ("edge", "loadbalancer"))
    }
    there |= {"pools.master.roles": ["master"], "frontDoors.vip": {"address": "192.0.2.99"}}
    engine = stacks.new(adopted(there))
    for edit in ({}, {"nodes": {name: {"state": "absent"}}}):
        updated(stacks, engine, adopted(there | edit))
    lost = updated(stacks, engine, adopted(there | {"nodes": {name: {"state": "lost"}}}))
    assert lost.findings() == []


def test_a_lost_member_goes_before_one_that_was_absent_is_back(stacks: Stacks) -> None:
    five: Edit = {"pools.master.count": 4, "pools.etcd": {"roles": ["etcd"], "count": 1}}
    engine = stacks.new(lab(five))
    for edit in ({}, {"nodes": {"master-1": {"state": "absent"}}}):
        updated(stacks, engine, lab(five | edit))
    back = updated(stacks, engine, lab(five | {"nodes": {"etcd-1": {"state": "lost"}}}))
    said = [text for who in back.report.headline.disruption for text in who.notices]
    assert any(
        text.startswith("once etcd-1 has left, one more failure ends its quorum (3 of 4")
        for text in said
    ), said
    assert back.findings() == []


def test_a_taint_ends_no_pod_of_a_machine_that_was_absent_and_is_made_anew(stacks: Stacks) -> None:
    engine = stacks.new(lab(FEW))
    for edit in ({}, {"nodes": {"worker-2": {"state": "absent"}}}):
        updated(stacks, engine, lab(FEW | edit))
    taint = {"key": "gpu", "effect": "NoExecute"}
    anew: Edit = {"nodes": {"worker-2": {"generation": 2, "taints": [taint]}}}
    assert updated(stacks, engine, lab(FEW | anew)).findings() == []
