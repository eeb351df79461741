"""Story: the first minutes on this computer, by the README's commands in a clone: made, changed, looked at, taken away."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.e2e.harness import lab
from tests.e2e.harness.clone import Clone, cloned, ready
from tests.e2e.harness.lab import ROOT

ALONE = "make clean takes the images of lab machines away"
LAB = "test-this-computer"
NODES = {"master-1", "master-2", "master-3", "worker-1", "worker-2"}
README = ROOT / "README.md"


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clone]:
    with cloned(tmp_path_factory.mktemp("clone") / "kube-ha", LAB, "10.93.104") as made:
        yield made


def test_the_readme_says_so() -> None:
    blocks = "\n".join(
        re.findall(r"^```sh\n(.*?)^```$", README.read_text(), re.MULTILINE | re.DOTALL)
    )
    commands = [line.partition("#")[0].strip() for line in blocks.splitlines()]
    assert [line for line in commands if line in ("make dev", "make clean")] == [
        "make dev",
        "make clean",
    ]


def test_make_dev_ends_with_a_cluster(clone: Clone) -> None:
    assert ready(clone.types("make dev")) == NODES
    assert ready(clone.types("kubectl get nodes")) == NODES


def test_the_next_commands_that_it_names_work(clone: Clone) -> None:
    clone.types("pulumi config set --path 'kube-ha:pools.worker.count' 3")
    assert "or APPROVED=" in clone.types("make up", fails=True)
    shown = clone.types("make up YES=1")
    assert shown.index("Add 1 worker (worker-3)") < shown.index("worker-3  joining")
    assert ready(clone.types("kubectl get nodes")) == NODES | {"worker-3"}
    assert "everything is as planned" in clone.types("make status")
    assert "the cluster works: 6 nodes" in clone.types("make verify")
    assert "worker-3" in clone.types('make -s ssh NODE=worker-3 CMD="hostname"')
    assert "kubelet" in clone.types("make -s logs NODE=master-1 UNIT=kubelet")


def test_make_clean_takes_it_away(clone: Clone) -> None:
    assert "What stays on this computer" in clone.types("make clean")
    assert lab.containers(LAB) == []
    assert not (clone.folder / ".local").exists()
