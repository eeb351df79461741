"""What many nodes cost: a cluster of as many as you like, and examples/thousand.yaml previewed.

    python -m tests.bench.thousand [--nodes 1000] [--masters 3] [--parts join,idle]

Each figure of the engine stands beside that of as many resources that are nothing (local commands,
`true`), with the same engine in the same run: the floor. The engine, the program, its plugins, SSH,
the state, three masters and their API are real. Workers are hollow (tests/e2e/harness/hollow): one
process answers SSH on their addresses and is their kubelets, with an identity, a lease and a watch
each; their phases do nothing, no container runs and no packet goes to a pod. So what a worker takes
itself is not in here. Checkpoints are off (PULUMI_SKIP_CHECKPOINTS): with them a state in a file
grows with the square of the nodes. A part that fails or takes too long is told, and the next one
begins. Let nothing else run on this computer.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.bench.create import machine, say
from tests.bench.processes import Taken, taken
from tests.e2e.harness.hollow.cluster import HollowCluster, hollow_cluster
from tests.e2e.harness.lab import ROOT, LabError
from tests.e2e.harness.waiting import wait_for
from tests.toolchain import examples
from tests.toolchain.project import Project

NAME = "test-bench-thousand"  # a lab of tests: tests.run free removes what a killed run leaves
SUBNET = "10.93.115.0/24"
# The goal for what changes nothing, by processor time.
GOAL = 1.5
# As docs/explain/sizing.md has it, in proportion to this computer.
FAST = {"PULUMI_SKIP_CHECKPOINTS": "true", "PULUMI_PARALLEL": "32"}
LOOK_S = 60  # at an API that nothing else is asked of
NOTHING = """
import pulumi
from pulumi_command import local
for number in range(int(pulumi.Config().require("count"))):
    local.Command(f"nothing-{number}", create="true", add_previous_output_in_env=False)
"""
UP = ("up", "--yes", "--skip-preview", "--suppress-outputs", "--suppress-progress")
PREVIEW = ("preview", "--suppress-outputs", "--suppress-progress")


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """One run of the engine."""

    what: str
    taken: Taken
    resources: int  # all that there are, the ones that stayed too
    changes: int
    commands: int = 0  # on hollow machines


@dataclass(slots=True)
class Stack:
    """A stack whose runs are measured."""

    name: str
    folder: Path
    environment: Mapping[str, str]
    state: Callable[[], Path]  # as the file backend keeps it
    commands: Callable[[], int] = lambda: 0  # on hollow machines, so far

    def run(self, what: str, words: tuple[str, ...], *, limit_s: float = 600) -> Measure:
        """One run to its end. Raises AssertionError with what was printed last when it fails."""
        before = self.commands()
        text, took = taken(lambda: self._pulumi(*words, limit_s=limit_s))
        # The plan that is printed before has numbers of its own.
        said = text.rpartition("Resources:")[2]
        changes = sum(map(int, re.findall(r"^ +(?:[~+-]|\+-) (\d+) ", said, re.MULTILINE)))
        same = re.search(r"(\d+) unchanged", said)
        out = Measure(
            what=what,
            taken=took,
            resources=changes + (int(same[1]) if same else 0),
            changes=changes,
            commands=self.commands() - before,
        )
        say(_line(out))
        return out

    def _pulumi(self, *words: str, limit_s: float) -> str:
        """What it prints. At its limit it is interrupted, so that its state is kept."""
        process = subprocess.Popen(
            ["pulumi", *words, "--stack", self.name, "--non-interactive", "--color", "never"],
            cwd=self.folder,
            env=dict(self.environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            text, _ = process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
            text, _ = process.communicate(timeout=300)
            raise AssertionError(f"{words[0]}: no end in {limit_s} s\n{text[-3000:]}") from None
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
        assert process.returncode == 0, text[-3000:]
        return text


@dataclass(slots=True)
class Life:
    """A cluster whose parts are measured one after another."""

    cluster: HollowCluster
    stack: Stack
    empty: Project  # resources that are nothing
    workers: int
    nothing: Measure | None = None  # the floor of an update with nothing to do
    missed: list[str] = field(default_factory=list)

    def floor(self, like: Measure, words: tuple[str, ...]) -> Measure:
        """As many resources that are nothing."""
        self.empty.set(count=str(like.resources - 1))
        return _of_project(self.empty, "test").run("its floor", words)

    def beside(self, own: Measure, floor: Measure | None) -> None:
        """Tell both."""
        if floor:
            ratio = own.taken.processor_s / floor.taken.processor_s
            say(f"{own.what}: {ratio:.2f} times the floor's processor time")
            if not own.changes and ratio > GOAL:
                self.missed.append(f"{own.what}: {ratio:.2f} times the floor")

    def up(self, what: str, *, limit_s: float = 600) -> None:
        """An update, beside the floor of one with nothing to do; what the API felt of it is told."""
        with self.felt(what):
            own = self.stack.run(what, UP, limit_s=limit_s)
        self.beside(own, self.nothing)

    @contextmanager
    def felt(self, during: str) -> Iterator[None]:
        """How API servers that run answered meanwhile, and whether a node was taken for dead."""
        with self.cluster.meanwhile() as felt:
            yield
        say(f"API during {during}: {felt}")


def join(life: Life) -> None:
    """All workers but one, with the control plane there."""
    cluster = life.cluster
    # As docs/explain/sizing.md says: first the control plane, with checkpoints.
    say(f"{len(cluster.masters)} masters in {cluster.stack.up().seconds:.1f} s")
    cluster.want(life.workers)
    with life.felt("joining"):
        own = life.stack.run(f"{life.workers} workers join", UP, limit_s=1800)
    size = life.stack.state().stat().st_size
    say(f"state {size} bytes, {size / life.workers:.0f} a worker")
    life.beside(own, life.floor(own, UP))


def idle(life: Life) -> None:
    """Nothing to do, and its preview."""
    own = life.stack.run("nothing to do", UP)
    life.nothing = life.floor(own, UP)
    life.beside(own, life.nothing)
    own = life.stack.run("preview, nothing to do", PREVIEW)
    life.beside(own, life.floor(own, PREVIEW))


def more(life: Life) -> None:
    """One worker more."""
    life.cluster.want(life.workers + 1)
    life.up("one worker more")


def label(life: Life) -> None:
    """A label on the pool: on the Node of each worker."""
    life.cluster.stack.edit("pools.worker.labels", {"example.com/a": "b"})
    life.up("a label on the pool")


def death(life: Life) -> None:
    """Before, while and after the first master is dead; an update meanwhile."""
    with life.felt(f"{LOOK_S} s of nothing"):
        time.sleep(LOOK_S)
    first = life.cluster.stack.node("master-1")
    first.kill()
    with life.felt(f"the first {LOOK_S} s without master-1"):
        time.sleep(LOOK_S)
    life.cluster.stack.edit("pools.worker.labels", {"example.com/a": "c"})
    life.up("a label on the pool, master-1 is dead")
    first.start()
    with life.felt(f"{LOOK_S} s from its return on"):
        time.sleep(LOOK_S)


def waves(life: Life) -> None:
    """A setting of all workers in waves, one of a hundred dead; then these."""
    dead = range(0, life.workers, 100)
    life.cluster.workers.switch_off(dead)
    life.cluster.stack.edit("rollout.absentBudget", len(dead))
    life.cluster.stack.edit("kubelet.maxPods", 60)
    life.up(f"a setting in waves, {len(dead)} dead", limit_s=1500)
    life.cluster.workers.switch_off(())
    wait_for("the dead are back", lambda: str(life.cluster.ready()[False] or ""), limit_s=120)
    life.up("the dead are back")


def replaced(life: Life) -> None:
    """The first master's machine dies, and another one is made under its name."""
    life.cluster.stack.node("master-1").kill()
    life.cluster.rebuild("master-1")
    life.up("master-1 is dead and made anew", limit_s=900)


PARTS = (join, idle, more, label, death, waves, replaced)


def main() -> int:
    """Exit code: 0 when every part ended and what changes nothing meets the goal."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--masters", type=int, default=3)
    every = ["example", *(part.__name__ for part in PARTS)]
    parser.add_argument("--parts", type=lambda text: text.split(","), default=every)
    options = parser.parse_args()
    # So that hollow workers end when a supervisor ends this.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    workers = options.nodes - options.masters
    say(f"{machine()}; {options.masters} masters, {workers} hollow workers; {FAST}")
    with tempfile.TemporaryDirectory(prefix="kube-ha-") as name:
        folder = Path(name)
        empty = replace(Project.make(folder / "floor", NOTHING), limit_s=60)
        with hollow_cluster(NAME, SUBNET, workers + 1, masters=options.masters) as cluster:
            life = Life(cluster, _of_cluster(cluster), empty, workers)
            for part in PARTS:
                if part.__name__ in options.parts:
                    _tried(life, part)
        if "example" in options.parts:
            _tried(life, lambda life: _example(life, folder / "example"))
    print("\n".join(life.missed) or "every goal is met")
    return 1 if life.missed else 0


def _tried(life: Life, part: Callable[[Life], None]) -> None:
    """A part that fails loses no other one."""
    try:
        part(life)
    except (AssertionError, LabError, subprocess.SubprocessError) as failed:
        life.missed.append(f"{part.__doc__}: {failed}")
        say(f"FAILED {part.__doc__}: {failed}")


def _example(life: Life, folder: Path) -> None:
    example = _of_project(examples.thousand(folder, limit_s=60), "thousand")
    own = example.run("preview of the example", PREVIEW)
    life.empty.set(count="0")
    _of_project(life.empty, "test").run("none", UP)
    life.beside(own, life.floor(own, PREVIEW))


def _of_cluster(cluster: HollowCluster) -> Stack:
    made = cluster.stack
    return Stack(
        made.name,
        ROOT,
        made.environment | FAST,
        lambda: made.state_file,
        lambda: cluster.workers.commands().total(),
    )


def _line(found: Measure) -> str:
    memory = ", ".join(f"{kind} {mib}" for kind, mib in sorted(found.taken.mib.items()))
    return (
        f"{found.what:<24} {found.taken.wall_s:7.1f} s, {found.taken.processor_s:7.1f} s of processor, "
        f"{found.changes} of {found.resources} resources, {found.commands} commands; MiB: {memory}"
    )


def _of_project(project: Project, name: str) -> Stack:
    def state() -> Path:
        (file,) = project.folder.glob(f"state/.pulumi/stacks/*/{name}.json")
        return file

    return Stack(name, project.folder, {**project.environment, **FAST}, state)


if __name__ == "__main__":
    sys.exit(main())
