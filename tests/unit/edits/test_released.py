"""Machines that left and keep their data: remembered by name until they are back."""

from __future__ import annotations

import json

import pytest

from operations import wipe
from operations.engine.engine import StackError
from operations.engine.stack import Stack
from operations.ssh import client
from operations.ssh.client import Answer, Target
from stacks.cluster.resolve import plan
from stacks.edits import memory, transition
from stacks.edits.memory import Memory
from stacks.load import load
from tests.unit.configs import adopted, host, lab

ONE = {"pools.worker.hosts": [host("worker", 1)]}
KEPT = "machines that leave from now on keep their data; until now they were wiped"
WIPED = "machines that leave from now on are WIPED, data too; until now they kept it"


def applied(*configs: dict[str, object]) -> Memory:
    """What is remembered when these were applied, one after the other."""
    known = None
    for config in configs:
        known = memory.read(json.loads(json.dumps(memory.of(plan(load(config)), known))))
    assert known is not None
    return known


def test_who_leaves_is_remembered_until_it_is_back() -> None:
    assert applied(adopted()).released == {}
    left = applied(adopted(), adopted(ONE)).released
    there = plan(load(adopted())).node("worker-2")
    assert list(left) == ["worker-2"]
    assert left["worker-2"].address == there.address
    assert there.ssh is not None
    assert left["worker-2"].host_key == there.ssh.host_key
    assert applied(adopted(), adopted(ONE), adopted(ONE)).released == left
    assert applied(adopted(), adopted(ONE), adopted()).released == {}


def test_a_machine_that_is_back_under_another_name_is_not_remembered() -> None:
    renamed = {"pools.worker.hosts": [host("worker", 1), {**host("worker", 2), "name": "other-7"}]}
    assert applied(adopted(), adopted(ONE), adopted(renamed)).released == {}


def test_what_is_wiped_deleted_or_lost_is_not_remembered() -> None:
    wiping = {"machines.onRelease": "wipe"}
    assert applied(adopted(), adopted({**ONE, **wiping})).released == {}
    assert applied(lab(), lab({"pools.worker.count": 1})).released == {}
    lost = adopted({"nodes": {"worker-2": {"state": "lost"}}})
    assert applied(adopted(), lost, adopted(ONE)).released == {}


@pytest.mark.parametrize(("then", "now", "text"), [("wipe", "keep", KEPT), ("keep", "wipe", WIPED)])
def test_another_end_for_machines_is_said(then: str, now: str, text: str) -> None:
    before = applied(adopted({"machines.onRelease": then}))
    verdict = transition.check(before, plan(load(adopted({"machines.onRelease": now}))))
    assert ("machines.onRelease", text) in [tuple(warning) for warning in verdict.warnings]
    assert not transition.check(before, plan(load(adopted({"machines.onRelease": then})))).warnings


def stack_of(config: dict[str, object], remembered: dict[str, object]) -> Stack:
    return Stack(plan=plan(load(config)), targets={}, cluster_id="c0ffee", remembered=remembered)


def test_it_is_wiped_where_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[Target, str, dict[str, str]]] = []

    def run(target: Target, phase: str, values: dict[str, str], *, limit_s: int) -> Answer:
        asked.append((target, phase, values))
        return Answer(status=0, text="machine is clean", asked_at_s=0)

    monkeypatch.setattr(client, "run", run)
    agent = {"machines.ssh": {"user": "admin", "agent": True}}
    first = applied(adopted(agent))
    then = adopted({**agent, **ONE})
    found = stack_of(then, memory.of(plan(load(then)), first))
    assert wipe.wipe(found, "worker-2") == "machine is clean"
    ((target, phase, values),) = asked
    assert phase == "leave"
    assert target.hop.address == plan(load(adopted())).node("worker-2").address
    assert (values["NODE"], values["CLUSTER_ID"]) == ("worker-2", "c0ffee")


def test_a_machine_that_left_is_reached_by_its_own_way(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Target] = []

    def run(target: Target, *_: object, limit_s: int) -> Answer:
        asked.append(target)
        return Answer(status=0, text="machine is clean", asked_at_s=0)

    monkeypatch.setattr(client, "run", run)
    first = applied(adopted({"pools.worker.hosts.1.sshAddress": "worker-2.example.com"}))
    kept = json.loads(json.dumps(memory.of(plan(load(adopted(ONE))), first)))
    wipe.wipe(stack_of(adopted(ONE), kept), "worker-2")
    assert asked[0].hop.address == "worker-2.example.com"
    # A memory of machines without such an address is as it was.
    assert "ssh_address" not in json.dumps(memory.of(plan(load(adopted(ONE))), applied(adopted())))


@pytest.mark.parametrize("name", ["worker-1", "worker-9"])
def test_nothing_else_is_wiped(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(client, "run", None)
    found = stack_of(adopted(), {})
    with pytest.raises(StackError, match=r"only machines that left|not a machine that left"):
        wipe.wipe(found, name)
