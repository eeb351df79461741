"""Story: the first minutes on this computer, by the README's commands in a clone: made, changed, looked at, taken away."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.harness import lab
from tests.e2e.harness.lab import ROOT

ALONE = "make clean takes the images of lab machines away"
LAB = "test-this-computer"
NODES = {"master-1", "master-2", "master-3", "worker-1", "worker-2"}
README = ROOT / "README.md"


class Clone:
    """A fresh clone and a shell in it; its dev cluster has a name and addresses of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        subprocess.run(["git", "clone", "-q", str(ROOT), str(folder)], check=True)
        file = folder / "Pulumi.dev.yaml"
        text = re.sub(r"\bname: dev\b", f"name: {LAB}", file.read_text())
        file.write_text(text.replace("10.92.0.", "10.93.104."))

    def types(self, line: str, *, fails: bool = False) -> str:
        """All that a command prints."""
        done = subprocess.run(
            ["bash", "-c", f"if [ -f .env ]; then source .env; fi; {line}"],
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=900,
            check=False,
        )
        assert (done.returncode != 0) == fails, f"{line}\n{done.stdout[-4000:]}"
        return done.stdout


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clone]:
    lab.free(LAB)
    made = Clone(tmp_path_factory.mktemp("clone") / "kube-ha")
    try:
        yield made
    finally:
        lab.free(LAB)
        shutil.rmtree(made.folder, ignore_errors=True)
        # Its last command takes away what the next story needs.
        subprocess.run(["make", "setup"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


def ready(shown: str) -> set[str]:
    return {row.split()[0] for row in shown.splitlines() if " Ready " in row}


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
