"""Story: a cluster with dead machines is destroyed: containers of the lab are simply gone; an adopted machine that is dead is named, and forgotten when it is said to be lost."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e import config, lab
from tests.e2e.lab import ROOT
from tests.e2e.machines import Machines
from tests.e2e.stack import Stack

IN_LAB, ADOPTED = "test-dead-lab", "test-dead"


@pytest.fixture
def in_lab() -> Iterator[Stack]:
    wanted = config.lab(IN_LAB, "10.93.28.0/24", masters=1, workers=1)
    with Stack("destroy_with_a_dead_machine", wanted) as stack:
        yield stack


@pytest.fixture
def machines() -> Machines:
    return Machines(ADOPTED, "10.93.29.0/24", ROOT / ".local/test/dead-machines")


@pytest.fixture
def adopted(machines: Machines) -> Iterator[Stack]:
    hosts: dict[str, list[dict[str, object]]] = {"master": [], "worker": []}
    wanted = config.adopted(ADOPTED, machines.mirror, machines.user_key, hosts)
    with Stack("destroy_with_a_dead_machine", wanted) as stack:
        machines.start_lab()
        hosts["master"].append(machines.start("master-1", 11))
        hosts["worker"] += [machines.start(f"worker-{n}", 100 + n) for n in (1, 2)]
        stack.write()
        yield stack


def test_machines_of_the_lab_go_dead_or_alive(in_lab: Stack) -> None:
    in_lab.up()
    for name in ("master-1", "worker-1"):
        in_lab.node(name).kill()
    update = in_lab.destroy()
    in_lab.measured(f"destroy of two dead machines: {update.seconds:.0f} s")
    assert update.ssh_connections == []
    assert in_lab.resources() == []
    assert lab.containers(IN_LAB) == []


def test_an_adopted_machine_that_is_dead_is_named_and_the_others_are_cleaned(
    adopted: Stack, machines: Machines
) -> None:
    adopted.up()
    adopted.node("worker-2").kill()
    failed = adopted.start("destroy")
    assert failed.end() != 0
    assert f"{ADOPTED}-worker-2-preflight" in failed.output
    left = {str(entry["urn"]).rpartition("::")[2] for entry in adopted.resources()}
    assert {name for name in left if name.endswith("-preflight")} == {
        f"{ADOPTED}-worker-2-preflight"
    }
    for name in ("master-1", "worker-1"):
        assert not adopted.node(name).runs("kubelet")
    # It came back, as dead ones often do: then the next destroy is whole.
    adopted.node("worker-2").start()
    adopted.destroy()
    assert adopted.resources() == []
    assert not adopted.node("worker-2").runs("kubelet")
