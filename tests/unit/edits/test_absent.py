"""Absent nodes: what is refused while one is, what is remembered of it, and who is left out without a word."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime

import pytest

from stacks.cluster.plan import Plan
from stacks.edits import memory, silence, snapshots
from stacks.edits.memory import Memory
from stacks.edits.transition import TransitionError, check
from stacks.explain import report
from stacks.load import load, planned
from stacks.order import difference
from tests.unit.configs import adopted, host_key, lab
from tests.unit.configs import planned as of_config

FIVE = {"pools.master.count": 5}
SEPARATE = {"pools.etcd": {"roles": ["etcd"], "count": 3}, "pools.master.roles": ["master"]}
MANY = {"pools.worker.count": 10}


def absent(*names: str) -> dict[str, object]:
    return {f"nodes/{name}": {"state": "absent"} for name in names}


def known(plan: Plan, before: Memory | None = None) -> Memory:
    return memory.read(json.loads(json.dumps(memory.of(plan, before))))


def after(config: Mapping[str, object], before: Memory) -> Plan:
    return planned(load(config, read_keys=False), before)


def refused(before: Mapping[str, object], wanted: Mapping[str, object]) -> list[str]:
    was = known(of_config(before))
    try:
        check(was, after(wanted, was))
    except TransitionError as error:
        return [f"{path}: {text}" for path, text in error.problems]
    return []


TWO = {**SEPARATE, "pools.master.count": 2}
ONE_AWAY = {**TWO, **absent("master-1")}

ALLOWED = [
    (ONE_AWAY, {**ONE_AWAY, "kubelet.maxPods": 50}),
    (ONE_AWAY, {**ONE_AWAY, "etcd.snapshotCount": 20000}),
    ({}, absent("worker-1")),
    ({}, absent("worker-1", "worker-2")),
    ({}, absent("master-1")),
    (FIVE, {**FIVE, **absent("master-1", "master-2")}),
    ({}, {**absent("master-3"), "pools.worker.count": 5}),
    (absent("master-3"), {**absent("master-3"), "controlPlane.apiServerArgs": {"v": "4"}}),
    (absent("worker-1"), {**absent("worker-1"), "etcd.snapshotCount": 20000}),
    (FIVE | absent("master-5"), {**FIVE, **absent("master-5"), "etcd.snapshotCount": 20000}),
    (absent("worker-1"), {"nodes/worker-1": {"state": "lost"}}),
    (absent("worker-1"), {"nodes/worker-1": {"state": "maintenance"}}),
    (absent("worker-1"), {}),
    (absent("worker-1"), {**absent("worker-1"), "pki.rotation.etcd": {"generation": 2, "step": "trust"}}),
    ({"cluster.kubernetes": "1.35.4", **absent("worker-1")}, absent("worker-1")),
    (absent("master-3"), {**absent("master-3"), "os/packages": "june", "os/reboot": "never"}),  # etcd keeps running
    ({**absent("master-3"), "os/packages": "june"}, absent("master-3")),
]  # fmt: skip
REFUSED = [
    ({}, absent("master-1", "master-2"), "2 are needed"),
    ({"pools.master.count": 1}, {"pools.master.count": 1, **absent("master-1")}, "no master"),
    ({}, absent("worker-1") | {"nodes/worker-9": {"state": "absent"}, "pools.worker.count": 9}, "has not joined"),
    (absent("worker-1"), {"nodes/worker-1": {"state": "removed"}}, "lost"),
    (absent("worker-1"), {"nodes/worker-1": {"state": "decommissioned"}}, "lost"),
    (absent("worker-2"), {"pools.worker.count": 1}, "lost"),
    ({}, {"nodes/worker-1": {"state": "absent", "generation": 2}}, "recreated"),
    (absent("master-3"), {**absent("master-3"), "etcd.snapshotCount": 20000}, "restarts etcd on master-1"),
    (absent("master-3"), {**absent("master-3"), "os/packages": "june"}, "restarts etcd on master-1"),
    ({"cluster.kubernetes": "1.35.4"}, absent("master-3"), "minor version while master-3"),
    ({}, {**absent("worker-1"), "pki.rotation.kubernetes": {"generation": 2, "step": "trust"}}, "miss this step"),
    ({}, {**absent("master-1"), "pki.rotation.etcd": {"generation": 2, "step": "trust"}}, "miss this step"),
    (SEPARATE, {**absent("master-1")}, "change its roles"),
    (ONE_AWAY, {**ONE_AWAY, "controlPlane.apiServerArgs": {"v": "4"}}, "restarts the API server on master-2"),
    (ONE_AWAY, {**ONE_AWAY, "os/packages": "june"}, "restarts the API server on master-2"),
    ({**ONE_AWAY, "cluster.kubernetes": "1.36.1"}, ONE_AWAY, "restarts the API server on master-2"),
]  # fmt: skip


@pytest.mark.parametrize(("before", "wanted"), ALLOWED)
def test_an_edit_that_does_without_it_passes(
    before: dict[str, object], wanted: dict[str, object]
) -> None:
    assert refused(lab(before), lab(wanted)) == []


@pytest.mark.parametrize(("before", "wanted", "word"), REFUSED)
def test_an_edit_that_needs_it_is_refused(
    before: dict[str, object], wanted: dict[str, object], word: str
) -> None:
    assert any(word in text for text in refused(lab(before), lab(wanted)))


def test_a_mirror_that_comes_restarts_members_so_nobody_else_may_be_absent() -> None:
    mirror = {"url": "http://m.example.com", "registry": "http://m.example.com:5000"}
    mirror["manifest"] = ".local/bundle/manifest.json"
    before, after = (adopted({**absent("master-3"), **more}) for more in ({}, {"mirror": mirror}))
    assert any("restarts etcd on master-1" in text for text in refused(before, after))


def test_a_new_cluster_has_nobody_absent() -> None:
    with pytest.raises(TransitionError, match="has not joined"):
        check(None, of_config(lab(absent("worker-1"))))


def test_two_minor_versions_are_too_many_for_a_worker_that_missed_one() -> None:
    before = known(of_config(lab(absent("worker-1"))))
    missed = memory.read(
        {**memory.of(of_config(lab(absent("worker-1")))), "absent": {"worker-1": "1.34.1"}}
    )
    assert before.absent == {"worker-1": "1.36.3"}
    assert missed.absent == {"worker-1": "1.34.1"}
    kept = known(after(lab(absent("worker-1")), missed), missed)
    assert kept.absent == {"worker-1": "1.34.1"}  # of the day when it was there


def test_who_acts_is_remembered_where_it_is_not_the_first() -> None:
    first = known(of_config(lab()))
    assert "acting" not in memory.of(of_config(lab()))
    away = after(lab(absent("master-1")), first)
    assert away.acting.name == "master-2"
    assert after(lab(), known(away, first)).acting.name == "master-2"
    assert after(lab(absent("master-2")), known(away, first)).acting.name == "master-1"


def seen(
    config: Mapping[str, object], edit: Mapping[str, object], *silent: str
) -> tuple[Memory, Plan]:
    before = known(of_config(config))
    plan = after(edit, before)
    dialled = difference.edit(before, plan).dialled
    return before, silence.seen(before, plan, silent, dialled)


def texts(plan: Plan) -> str:
    return "\n".join(f"{path}: {text}" for path, text in plan.warnings)


def test_everybody_answers_and_nothing_is_another() -> None:
    before = known(of_config(lab(MANY)))
    plan = after(lab({**MANY, "kubelet.maxPods": 50}), before)
    assert silence.seen(before, plan, (), ()) is plan


def test_a_silent_worker_that_would_change_is_left_out_and_remembered() -> None:
    edit = lab({**MANY, "kubelet.maxPods": 50})
    before, plan = seen(lab(MANY), edit, "worker-3")
    assert [node.name for node in plan.absent] == ["worker-3"]
    assert "worker-3 does not answer and is left out" in texts(plan)
    again = known(plan, before)
    assert again.absent == {"worker-3": "1.36.3"}
    assert "worker-3" in difference.edit(again, after(edit, again)).dialled
    settled = silence.seen(again, after(edit, again), ["worker-3"], ["worker-3"])
    assert difference.edit(again, settled).differences == ()


def test_a_silent_worker_on_which_nothing_changes_stays_as_it_is() -> None:
    _, plan = seen(lab(MANY), lab({**MANY, "pools.worker.labels": {"disk": "nvme"}}), "worker-3")
    assert plan.absent == ()
    assert "worker-3 does not answer; nothing changes on it" in texts(plan)


@pytest.mark.parametrize(
    ("rollout", "silent", "word"),
    [
        ({}, ("worker-3", "worker-4"), "allows 1: this update will fail"),
        ({"absentBudget": "20%"}, ("worker-3", "worker-4"), ""),
        ({"absentBudget": 0}, ("worker-3",), "allows 0"),
        ({"critical": ["worker-3"], "failureBudgetPercent": 10}, ("worker-3",), "rollout.critical"),
    ],
)
def test_the_budget_decides(rollout: dict[str, object], silent: tuple[str, ...], word: str) -> None:
    _, plan = seen(lab(MANY), lab({**MANY, "kubelet.maxPods": 50, "rollout": rollout}), *silent)
    assert bool(plan.absent) is not bool(word)
    assert word in texts(plan)


def test_another_master_acts_while_the_first_is_silent() -> None:
    before, plan = seen(lab(), lab({"pools.worker.count": 3}), "master-1")
    assert plan.acting.name == "master-2"
    assert plan.absent == ()
    assert "master-1 (10.92.0.11) does not answer; master-2 acts for the cluster" in texts(plan)
    again = after(lab({"pools.worker.count": 3}), known(plan, before))
    assert difference.edit(known(plan, before), again).differences == ()
    _, changed = seen(lab(), lab({"controlPlane.apiServerArgs": {"v": "4"}}), "master-1")
    assert "this update changes it, so it will fail there" in texts(changed)


def test_a_snapshot_is_taken_where_somebody_answers() -> None:
    before, plan = seen(lab(), lab({"controlPlane.apiServerArgs": {"v": "4"}}), "master-3")
    place = snapshots.place(before, plan)
    assert place is not None
    assert place.name == "master-2"


def test_nothing_is_asked_of_who_is_behind_a_bastion() -> None:
    bastion = {"machines.ssh.bastion": {"address": "192.0.2.1", "hostKey": host_key(900)}}
    nodes = of_config(adopted()).nodes
    assert silence.doors(nodes, {})["master-1"] == (nodes[0].address, 22)
    assert silence.doors(of_config(adopted(bastion)).nodes, {"master-1": ("192.0.2.9", 22)}) == {}
    assert silence.doors(of_config(lab()).nodes, {"master-1": ("10.92.0.11", 22)}) == {
        "master-1": ("10.92.0.11", 22)
    }


def test_what_an_absent_node_misses_is_told() -> None:
    before = known(of_config(lab()))
    plan = after(lab({**absent("worker-1"), "kubelet.maxPods": 50}), before)
    said = report.report(before, plan, check(before, plan))
    told = dict(report.warnings(said, datetime(2026, 1, 1, tzinfo=UTC)))
    assert (
        "put off until worker-1 is back: kubelet settings: kubelet restarts"
        in told["nodes.worker-1.state"]
    )
    alone = after(lab(absent("worker-1")), before)
    assert report.report(before, alone, check(before, alone)).changes.put_off == ()
