"""Story: a cluster that an earlier version of kube-ha made is taken over by this one: nothing restarts, and nothing is deleted."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.harness import config, pods
from tests.e2e.harness.assertions import assert_acceptance, assert_up_changes_nothing
from tests.e2e.harness.lab import ROOT
from tests.e2e.harness.machines import Machines
from tests.e2e.harness.stack import Stack
from tests.e2e.harness.update import Update

NAME = "test-taken-over"
NUMBERS = {"master-1": 11, "worker-1": 101}
# The earlier version: before the order of steps became data.
EARLIER = "4029d2784434260438398cfba29214c1ca0284d3"
# What an update that runs phases again replaces: names of attempts, copies of scripts, and gates between waves, which run
# nothing on a machine that is there for its own sake.
REPLACED = re.compile(r"-attempt$|-scripts$|-wave-\d+$")


@pytest.fixture(scope="module")
def machines() -> Machines:
    return Machines(NAME, "10.93.95.0/24", ROOT / ".local/test/taken-over-machines")


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Its program in a folder of its own, with the environment and the engine of this checkout."""
    folder = tmp_path_factory.mktemp("earlier") / "checkout"
    subprocess.run(["git", "worktree", "add", "--detach", folder, EARLIER], cwd=ROOT, check=True)
    for name in (".venv", ".local"):
        (folder / name).symlink_to(ROOT / name)
    yield folder
    subprocess.run(["git", "worktree", "remove", "--force", folder], cwd=ROOT, check=True)


@pytest.fixture(scope="module")
def stack(machines: Machines, earlier: Path) -> Iterator[Stack]:
    hosts: dict[str, list[dict[str, object]]] = {"master": [], "worker": []}
    wanted = config.adopted(NAME, machines.mirror, machines.user_key, hosts)
    with Stack("taken_over", wanted) as stack:
        machines.start_lab()
        for name, number in NUMBERS.items():
            hosts[name.partition("-")[0]].append(machines.start(name, number))
        stack.write()
        (earlier / stack.file.name).write_text(stack.file.read_text())
        stack.up(checkout=earlier)
        pods.deploy(stack)
        yield stack


@pytest.fixture(scope="module")
def update(stack: Stack) -> Update:
    with pods.untouched(stack, NUMBERS):
        return stack.up()


def test_nothing_restarts_and_nothing_is_deleted(stack: Stack, update: Update) -> None:
    stack.took("first update by this version", update.seconds)
    gone = [name for name, operation in update.changes.items() if "delete" in operation.split(", ")]
    replaced = [name for name, operation in update.changes.items() if "replace" in operation]
    assert gone == []
    assert [name for name in replaced if not REPLACED.search(name)] == []


def test_it_is_a_cluster_of_this_version_from_then_on(stack: Stack, update: Update) -> None:
    assert_acceptance(stack)
    assert_up_changes_nothing(stack)
