"""Story: a cluster of adopted machines is destroyed while some are dead: they are named until they are back, or forgotten."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.harness import config
from tests.e2e.harness.lab import ROOT
from tests.e2e.harness.machines import LEFT, Machines
from tests.e2e.harness.stack import Stack

NAME = "test-dead"


@pytest.fixture
def machines() -> Machines:
    return Machines(NAME, "10.93.29.0/24", ROOT / ".local/test/dead-machines")


@pytest.fixture
def stack(machines: Machines) -> Iterator[Stack]:
    hosts: dict[str, list[dict[str, object]]] = {"master": [], "worker": []}
    wanted = config.adopted(NAME, machines.mirror, machines.user_key, hosts)
    wanted["machines"]["onRelease"] = "wipe"
    with Stack("destroy_with_a_dead_machine", wanted) as stack:
        machines.start_lab()
        hosts["master"].append(machines.start("master-1", 11))
        hosts["worker"] += [machines.start(f"worker-{n}", 100 + n) for n in (1, 2, 3)]
        stack.write()
        yield stack


def test_the_dead_are_named_until_they_are_back_or_forgotten(
    stack: Stack, machines: Machines
) -> None:
    stack.up()
    stack.node("worker-3").kill()
    stack.set_nodes({"worker-3": {"state": "lost"}})
    stack.up()
    for name in ("worker-1", "worker-2"):
        stack.node(name).kill()
    refused = stack.start("destroy")
    assert refused.end() != 0
    assert "because it is protected" in refused.tail()
    assert refused.ssh_connections == []
    stack.unprotect()
    failed = stack.start("destroy")
    assert failed.end() != 0
    stack.took("destroy that meets two dead adopted machines ends", failed.seconds)
    named = [name for name in ("worker-1", "worker-2") if _leaving(name) in failed.tail()]
    assert named, failed.tail()
    assert f"{machines.address(103)}:" not in " ".join(failed.ssh_connections)

    # One comes back, as dead ones often do; the other never does.
    stack.node("worker-1").start()
    (gone,) = [urn for urn in _urns(stack) if urn.endswith(f"::{_leaving('worker-2')}")]
    stack.pulumi("state", "delete", gone, "--stack", stack.name, "--yes")
    again = stack.destroy()
    assert stack.resources() == []
    for number in (102, 103):
        assert f"{machines.address(number)}:" not in " ".join(again.ssh_connections)
    for name in ("master-1", "worker-1"):
        assert stack.node(name).run(LEFT) == "", f"{name} is not clean"


def _leaving(name: str) -> str:
    """The resource whose end makes a machine leave."""
    return f"{NAME}-{name}-preflight"


def _urns(stack: Stack) -> list[str]:
    return [str(entry["urn"]) for entry in stack.resources()]
