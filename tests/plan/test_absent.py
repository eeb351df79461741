"""Absent nodes under a recording engine: nothing runs on them, and all of it runs when they are back."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

import pytest

from stacks import load
from stacks.edits import memory, transition
from stacks.explain import report
from tests.plan.providers import COMMAND, COPY
from tests.plan.recording import RunError
from tests.plan.registration import Run
from tests.plan.settled import Stacks, assert_exactly
from tests.plan.told import Finding, Told
from tests.unit.configs import adopted, edited, lab, planned

VIP = {"frontDoors.vip": {"address": "10.92.0.5"}}
EDGES = {**VIP, "pools.edge": {"roles": ["loadbalancer"], "count": 2}}
SEPARATE = {"pools.etcd": {"roles": ["etcd"], "count": 3}, "pools.master.roles": ["master"]}
EDIT = {
    "kubelet.maxPods": 50,
    "pools.worker.labels": {"disk": "nvme"},
    "etcd.backup": {"everyHours": 1},
}


def absent(*names: str) -> dict[str, object]:
    return {f"nodes/{name}": {"state": "absent"} for name in names}


def about(run: Run, name: str) -> set[str]:
    return {str(change) for change in run.changes if f"-{name}-" in change.name}


def commands_on(run: Run, name: str) -> set[str]:
    """What runs on the machine in this run: made or changed, or deleted with something to do."""
    out = set()
    for change in run.changes:
        seen = change.after or change.before
        assert seen is not None
        is_its = f"NODE={name}\n" in seen.text("stdin") or f"-{name}-" in change.name
        if (
            seen.type in (COMMAND, COPY)
            and is_its
            and (change.mark != "-" or seen.inputs.get("delete"))
        ):
            out.add(str(change))
    return out


def findings(before: Mapping[str, object], after: Mapping[str, object], run: Run) -> list[Finding]:
    """What is told of the edit against what was done."""
    known = memory.read(json.loads(json.dumps(memory.of(planned(before)))))
    plan = load.planned(load.load(after, read_keys=False), known)
    said = report.report(known, plan, transition.check(known, plan))
    return Told(known.plan, plan, said, run).findings()


CASES: Mapping[str, tuple[dict[str, object], str]] = {
    "a worker": (lab(), "worker-1"),
    "the first master, with a virtual IP": (lab(VIP), "master-1"),
    "a load balancer": (lab(EDGES), "edge-1"),
    "a member of its own": (lab(SEPARATE), "etcd-1"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_nothing_runs_on_an_absent_machine_and_all_of_it_when_it_is_back(
    stacks: Stacks, case: str
) -> None:
    config, name = CASES[case]
    away = edited(config, {**absent(name), **EDIT})
    engine, first = stacks.settled(config)
    had = {one.name for one in first.resources.values() if one.name.startswith(f"dev-{name}-")}
    gone = engine.up(away)
    assert findings(config, away, gone) == []
    assert commands_on(gone, name) == set()
    assert {
        change for change in about(gone, name) if change[0] != "-" and "-pki-" not in change
    } == set()
    kept = gone.named(f"dev-{name}-preflight")
    assert {"connection", "create", "delete", "stdin"} <= set(kept.ignores)
    assert "dev-worker-2-node" in {
        change.name for change in gone.changes
    }  # the others have what is wanted
    assert_exactly(engine.up(away), [])
    back = engine.up(edited(config, EDIT))
    assert findings(away, edited(config, EDIT), back) == []
    assert {f"+ dev-{name}-scripts", f"+ dev-{name}-node"} <= {
        str(change) for change in back.changes
    }
    assert {
        one.name for one in back.resources.values() if one.name.startswith(f"dev-{name}-")
    } == had


def test_who_acts_stays_who_acts(stacks: Stacks) -> None:
    """The first master comes back, and nothing that another one does now moves again."""
    engine, _ = stacks.settled(lab())
    engine.up(lab(absent("master-1")))
    run = engine.up(lab())
    # Roll-outs of these have room for one that is absent.
    rolled = re.compile(r"dev-addon-(flannel|kube-proxy)(-attempt)?")
    assert not [c for c in run.changes if "-addon-" in c.name and not rolled.fullmatch(c.name)]
    assert "NODE=master-2\n" in run.named("dev-gate").text("stdin")


def test_the_machine_can_leave_by_its_own_command_later(stacks: Stacks) -> None:
    engine, _ = stacks.settled(adopted())
    engine.up(adopted(absent("worker-2")))
    engine.up(adopted())
    run = engine.up(adopted({"nodes/worker-2": {"state": "removed"}}))
    (left,) = [c for c in run.changes if c.name == "prod-worker-2-preflight"]
    assert left.mark == "-"
    assert left.before is not None
    assert left.before.text("delete")


def test_an_absent_node_does_not_leave_in_order(stacks: Stacks) -> None:
    engine, _ = stacks.settled(adopted())
    engine.up(adopted(absent("worker-2")))
    with pytest.raises(RunError, match=r"worker-2 was absent and would leave.*lost"):
        engine.up(adopted({"nodes/worker-2": {"state": "removed"}}))
    run = engine.up(adopted({"nodes/worker-2": {"state": "lost"}}))
    assert "~ prod-retire" in {str(change) for change in run.changes}


def test_while_the_first_master_is_silent_another_one_acts(stacks: Stacks) -> None:
    """Nothing else changes by that, then or later."""
    engine, _ = stacks.settled(lab())
    engine.silent = frozenset(["master-1"])
    run = engine.up(lab({"pools.worker.count": 3}))
    cluster_wide = r"dev-(addon-[a-z-]+|join-token|nodes|gate|acceptance|wave-\d)(-attempt)?"
    others = {c.name for c in run.changes if not re.fullmatch(cluster_wide, c.name)}
    assert others
    assert {name for name in others if "-worker-3-" not in name} == set()
    assert commands_on(run, "master-1") == set()
    assert any("master-1" in text and "master-2 acts" in text for text in run.messages)
    assert_exactly(engine.up(lab({"pools.worker.count": 3})), [])
    engine.silent = frozenset()
    assert_exactly(engine.up(lab({"pools.worker.count": 3})), [])
    back = engine.up(lab({"pools.worker.count": 3, "pools.worker.labels": {"disk": "nvme"}}))
    assert not [change for change in back.changes if "-addon-" in change.name]


def test_a_silent_worker_is_left_out_and_has_its_turn_when_it_answers(stacks: Stacks) -> None:
    config, edit = lab({"pools.worker.count": 4}), {"pools.worker.count": 4, "kubelet.maxPods": 50}
    engine, _ = stacks.settled(config)
    engine.silent = frozenset(["worker-3"])
    run = engine.up(lab(edit))
    assert commands_on(run, "worker-3") == set()
    assert "~ dev-worker-4-node" in {str(change) for change in run.changes}
    assert_exactly(engine.up(lab(edit)), [])
    engine.silent = frozenset()
    back = engine.up(lab(edit))
    assert {"+ dev-worker-3-scripts", "+ dev-worker-3-node"} <= {str(c) for c in back.changes}
    assert not [c for c in back.changes if re.search(r"-(worker-[124]|master-\d)-", c.name)]
    assert_exactly(engine.up(lab(edit)), [])
