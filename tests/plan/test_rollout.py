"""Waves of workers: what opens what, and which gates an edit, a failure and a revert run."""

from __future__ import annotations

import re

import pytest

from tests.plan.big import big
from tests.plan.graph import Graph
from tests.plan.recording import Engine, RunError
from tests.plan.registration import Run
from tests.plan.settled import Stacks, assert_exactly
from tests.unit.configs import edited, lab

FIVE = {"pools.master.count": 1, "pools.worker.count": 5}
SETTING = {"loadBalancing.maxConnections": 5000}


def of(rollout: dict[str, object] | None = None, **edits: object) -> dict[str, object]:
    """One master and five workers."""
    return lab({**FIVE, "rollout": rollout or {"parallel": 2}, **edits})


def changed(**rollout: object) -> dict[str, object]:
    return edited(of(rollout or None), SETTING)


def waited(run: Run, node: str) -> set[str]:
    """The gates before the change of a node."""
    return {name for name in Graph(run).before(f"dev-{node}-node") if "-wave-" in name}


def gates(*numbers: int) -> set[str]:
    return {f"dev-wave-{number}" for number in numbers}


def value(run: Run, number: int, name: str) -> str:
    text = run.named(f"dev-wave-{number}").text("stdin")
    found = re.search(rf"^{name}=('([^']*)'|\S*)$", text, re.MULTILINE)
    return "" if found is None else found[2] if found[2] is not None else found[1]


def done(run: Run, phase: str) -> list[str]:
    """Nodes, or numbers of waves, of which that phase ran."""
    ran = (re.fullmatch(rf"dev-(?:{phase}-(\d+)|(.+)-{phase})", c.name) for c in run.changes)
    return sorted(found[1] or found[2] for found in ran if found)


def test_workers_that_exist_change_in_waves_each_behind_its_gate(stacks: Stacks) -> None:
    engine, _ = stacks.settled(of())
    run = engine.up(changed(parallel=2))
    opened = {f"worker-{number}": waited(run, f"worker-{number}") for number in range(1, 6)}
    assert opened == {
        **dict.fromkeys(("worker-1", "worker-2"), gates(0)),
        **dict.fromkeys(("worker-3", "worker-4"), gates(0, 1)),
        "worker-5": gates(0, 1, 2),
    }
    graph = Graph(run)
    assert "dev-master-1-master" in graph.before("dev-wave-0")
    assert gates(0, 1, 2) <= graph.before("dev-nodes")
    assert not [name for gate in gates(0, 1, 2) for name in graph.before(gate) if "worker" in name]
    for number in range(1, 6):
        assert waited(run, f"worker-{number}") <= graph.before(f"dev-worker-{number}-scripts")


def test_a_gate_asks_for_its_wave_and_knows_who_comes_later(stacks: Stacks) -> None:
    engine, _ = stacks.settled(of())
    run = engine.up(changed(parallel=2, failureBudgetPercent=40, critical=["worker-4"]))
    shown = [
        [value(run, number, name).split(" ")[-1] for name in ("EARLIER", "NODES", "LATER")]
        for number in (0, 1, 2)
    ]
    assert shown == [
        ["", "", "worker-[1-5]"],
        ["", "worker-[1-2]", "worker-[3-5]"],
        ["worker-[1-2]", "worker-[3-4]", "worker-[5-5]"],
    ]
    assert [value(run, number, "BUDGET") for number in (0, 1, 2)] == ["2", "2", "2"]
    assert [value(run, number, "CRITICAL") for number in (1, 2)] == ["", "worker-4"]


def test_limits_of_the_config_reach_the_gates_they_concern(stacks: Stacks) -> None:
    engine, _ = stacks.settled(of())
    said = {
        "pauseS": 60,
        "holdAfter": 1,
        "windows": ["Mon 09:00-10:00 UTC"],
        "canary": {"count": 1},
    }
    drain = {"when": "always", "timeoutS": 60, "graceS": 5}
    run = engine.up(changed(parallel=9, drain=drain, **said))
    assert [value(run, number, "PAUSE_S") for number in (0, 1)] == ["0", "60"]
    assert [value(run, number, "HOLD") for number in (0, 1)] == ["", "1"]
    assert [value(run, number, "WINDOWS") for number in (0, 1)] == ["540-600", "540-600"]
    assert value(run, 0, "DRAIN") == "always 60 5"
    assert value(run, 1, "NODES").endswith(" worker-[1-1]")
    assert waited(run, "worker-2") == waited(run, "worker-5") == gates(0, 1)


def test_second_up_runs_no_gate(stacks: Stacks) -> None:
    engine, _ = stacks.settled(of())
    engine.up(changed(parallel=2))
    assert_exactly(engine.up(changed(parallel=2)), [])


def test_a_change_of_limits_alone_runs_nothing(stacks: Stacks) -> None:
    engine, _ = stacks.settled(of())
    said: dict[str, object] = {"pauseS": 60, "holdAfter": 1, "windows": ["Mon 09:00-10:00 UTC"]}
    assert_exactly(engine.up(of({"parallel": 2, "failureBudgetPercent": 50, **said})), [])


def test_nodes_are_told_by_the_first_gate_how_to_drain(stacks: Stacks) -> None:
    """Also those that have failed, and wait for another try."""
    engine, _ = stacks.settled(of())
    after = of({"parallel": 2, "drain": {"timeoutS": 900}})
    assert_exactly(engine.up(after), ["! dev-wave-0"])
    assert_exactly(engine.up(after), [])


def failed_in_second_wave(stacks: Stacks) -> Engine:
    """A stack in which a change of all workers was interrupted after the first wave; those of the second may be done or not."""
    engine, _ = stacks.settled(of())
    with pytest.raises(RunError):
        engine.up(
            changed(parallel=2),
            failing=["dev-wave-2"],
            after=["dev-worker-1-node", "dev-worker-2-node"],
        )
    return engine


def test_after_a_failure_the_next_up_goes_on_where_it_ended(stacks: Stacks) -> None:
    engine = failed_in_second_wave(stacks)
    run = engine.up(changed(parallel=2))
    assert "worker-5" in done(run, "node")
    assert not {"worker-1", "worker-2"} & set(done(run, "node"))
    assert done(run, "wave") == ["2"]


def test_a_revert_runs_the_gates_that_have_passed_and_no_other(stacks: Stacks) -> None:
    engine = failed_in_second_wave(stacks)
    run = engine.up(of())
    assert {"master-1", "worker-1", "worker-2"} <= set(done(run, "node"))
    assert "worker-5" not in done(run, "node")
    assert done(run, "wave") == ["0", "1"]
    assert waited(run, "worker-3") == gates(0, 1)
    assert_exactly(engine.up(of()), [])


def test_new_workers_wait_for_no_wave_and_no_gate_for_them(stacks: Stacks) -> None:
    engine, _ = stacks.settled(of())
    run = engine.up(edited(changed(parallel=2), {"pools.worker.count": 6}))
    assert waited(run, "worker-6") == set()
    for number in (0, 1, 2):
        for name in ("EARLIER", "NODES", "LATER"):
            assert "6" not in value(run, number, name).split(" ")[-1]


@pytest.mark.parametrize("count", [0, 1])
def test_few_workers_have_few_gates(stacks: Stacks, count: int) -> None:
    run = stacks.settled(lab({"pools.master.count": 1, "pools.worker.count": count}))[1]
    assert len([name for name in Graph(run).resources if "-wave-" in name]) == count


def test_many_waves_are_not_too_deep_and_a_worker_more_touches_few(stacks: Stacks) -> None:
    said = {"rollout": {"parallel": "1%"}}
    engine, born = stacks.settled(edited(big(103), said))
    assert len([name for name in Graph(born).resources if "-wave-" in name]) == 100
    before = engine.fork()
    run = engine.up(edited(big(103), {**said, **SETTING}))
    assert max(Graph(run).depths.values()) < 150
    sizes = [len(command.text("stdin")) for command in run.commands if "-wave-" in command.name]
    assert max(sizes) < 2000
    less = edited(big(102), said)
    names = {change.name for change in before.up(less).changes}
    assert {name for name in names if "-worker-" in name and "-worker-100-" not in name} == set()
    assert [name for name in names if "-wave-" in name] == ["prod-wave-99"]


def dialled(run: Run, name: str) -> object:
    connection = run.named(f"dev-{name}").value("connection")
    assert isinstance(connection, dict)
    return connection.get("dialErrorLimit")


def test_what_follows_a_reboot_dials_for_as_long_as_it_may_take(stacks: Stacks) -> None:
    engine, _ = stacks.settled(of())
    run = engine.up(edited(of(), {"os/packages": "june", "os/rebootTimeoutS": 900}))
    for name in ("master-1-etcd", "master-1-master"):
        assert dialled(run, name) == 180
    for name in ("master-1-node", "worker-1-node", "gate"):
        assert dialled(run, name) == 10
    assert value(run, 0, "OS") == "june"
    assert int(value(run, 1, "STALL_S")) == 300 + 300 + 900
    never = engine.up(edited(of(), {"os/packages": "june", "os/reboot": "never"}))
    assert dialled(never, "master-1-etcd") == 10
