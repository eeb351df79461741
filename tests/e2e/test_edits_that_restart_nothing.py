"""Story: labels, taints, pools, and the way in to machines change, and nothing on them is restarted. The machines are adopted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.harness import config, pods
from tests.e2e.harness.assertions import assert_sound
from tests.e2e.harness.lab import ROOT
from tests.e2e.harness.machines import Machines
from tests.e2e.harness.stack import Stack

NAME = "test-quiet"
NUMBERS = {"master-1": 11, "worker-1": 101, "worker-2": 102}
LIST_OF_NODES = {f"{NAME}-acceptance-attempt", f"{NAME}-nodes", f"{NAME}-gate"}


@pytest.fixture(scope="module")
def machines() -> Machines:
    return Machines(NAME, "10.93.33.0/24", ROOT / ".local/test/quiet-machines")


@pytest.fixture(scope="module")
def hosts() -> dict[str, list[dict[str, object]]]:
    """By pool, as they are in the config."""
    return {"master": [], "worker": []}


@pytest.fixture(scope="module")
def stack(machines: Machines, hosts: dict[str, list[dict[str, object]]]) -> Iterator[Stack]:
    wanted = config.adopted(NAME, machines.mirror, machines.user_key, hosts)
    with Stack("edits_that_restart_nothing", wanted) as stack:
        machines.start_lab()
        for name, number in NUMBERS.items():
            hosts[name.partition("-")[0]].append(machines.start(name, number))
        stack.write()
        stack.up()
        pods.deploy(stack)
        yield stack


def test_labels_and_taints_are_those_of_the_config_and_those_of_others_stay(stack: Stack) -> None:
    stack.kubectl("label", "node", "worker-1", "example.com/by=somebody")
    with pods.untouched(stack, NUMBERS):
        stack.edit("pools.worker.labels", {"example.com/tier": "front", "example.com/disk": "ssd"})
        taint = {"key": "example.com/only", "value": "batch", "effect": "NoSchedule"}
        stack.set_nodes({"worker-2": {"taints": [taint]}})
        update = stack.up()
        assert set(update.changes) == LIST_OF_NODES
        assert _labels(stack, "worker-1") == {"tier": "front", "disk": "ssd", "by": "somebody"}
        assert _labels(stack, "worker-2") == {"tier": "front", "disk": "ssd"}
        assert _taints(stack, "worker-2") == ["example.com/only=batch:NoSchedule"]

        stack.edit("pools.worker.labels", {"example.com/tier": "back"})
        stack.set_nodes({})
        stack.up()
    assert _labels(stack, "worker-1") == {"tier": "back", "by": "somebody"}
    assert _labels(stack, "worker-2") == {"tier": "back"}
    assert _taints(stack, "worker-2") == []


def test_a_worker_moves_to_another_pool_and_the_pool_gets_another_name(
    stack: Stack, hosts: dict[str, list[dict[str, object]]]
) -> None:
    moved = hosts["worker"].pop()
    edge = {"roles": ["worker"], "hosts": [moved], "labels": {"example.com/tier": "edge"}}
    with pods.untouched(stack, NUMBERS):
        stack.edit("pools.edge", edge)
        words = " ".join(stack.preview().output.split())
        assert "+ label example.com/tier=edge, - label example.com/tier=back" in words, words
        assert "0 to add, 1 to change, 0 to replace, 0 to remove, 2 unchanged" in words, words
        update = stack.up()
        assert set(update.changes) == LIST_OF_NODES | {f"{NAME}-edge"}
        assert _labels(stack, "worker-2") == {"tier": "edge"}

        stack.edit("pools.edge", None)
        stack.edit("pools.border", edge)
        update = stack.up()
    assert {name for name in update.changes if "worker-" in name} == set()
    assert _labels(stack, "worker-2") == {"tier": "edge"}


def test_machines_are_reached_as_another_user_and_by_other_host_keys(
    stack: Stack, machines: Machines, hosts: dict[str, list[dict[str, object]]]
) -> None:
    border = stack.config["pools"]["border"]
    assert isinstance(border, dict)
    with pods.untouched(stack, NUMBERS):
        stack.edit("machines.ssh.user", "root")
        for entry in (*hosts["master"], *hosts["worker"], *border["hosts"]):
            entry |= machines.start(str(entry["name"]), NUMBERS[str(entry["name"])])
        stack.write()
        refused = stack.preview(fails=True)
        assert "worker-1 has host key" in refused.output
        stack.allow(f"host-key/{name}" for name in NUMBERS)
        update = stack.up()
    stack.took("up by another user and other host keys", update.seconds)
    stack.allow(())
    assert_sound(stack)


def _labels(stack: Stack, name: str) -> dict[str, str]:
    """Those of example.com, without their domain."""
    labels: dict[str, str] = _node(stack, name)["metadata"]["labels"]
    mark = "example.com/"
    return {key.removeprefix(mark): labels[key] for key in labels if key.startswith(mark)}


def _taints(stack: Stack, name: str) -> list[str]:
    taints: list[dict[str, str]] = _node(stack, name)["spec"].get("taints", [])
    return [f"{taint['key']}={taint.get('value', '')}:{taint['effect']}" for taint in taints]


def _node(stack: Stack, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(stack.kubectl("get", "node", name, "-o", "json"))
    return found
