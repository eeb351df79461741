"""What many nodes cost: examples/thousand.yaml previewed, and a cluster of as many as you like.

    python -m tests.bench.thousand [--nodes 1000]

Each figure of the engine stands beside that of as many resources that are nothing (local commands,
`true`), with the same engine in the same run: the floor. The engine, the program, its plugins, SSH,
the state, three masters and their API are real. Workers are hollow (tests/e2e/harness/hollow): one
process answers SSH on their addresses and is their kubelets, with an identity, a lease and a watch
each; their phases do nothing, no container runs and no packet goes to a pod. So what a worker takes
itself is not in here. Checkpoints are off (PULUMI_SKIP_CHECKPOINTS): with them a state in a file
grows with the square of the nodes. Let nothing else run on this computer.
"""

from __future__ import annotations

import argparse
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from tests.bench.create import machine, say
from tests.bench.processes import Taken, taken
from tests.e2e.harness.hollow.cluster import MASTERS, HollowCluster, hollow_cluster
from tests.e2e.harness.lab import ROOT
from tests.e2e.harness.waiting import wait_for
from tests.toolchain import examples
from tests.toolchain.project import Project

NAME = "test-bench-thousand"  # a lab of tests: tests.run free removes what a killed run leaves
SUBNET = "10.93.115.0/24"
LIMIT_S = 4 * 3600  # of one run of the engine
# The goal for what changes nothing, by processor time.
GOAL = 1.5
FAST = {"PULUMI_SKIP_CHECKPOINTS": "true"}
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

    def run(self, what: str, words: tuple[str, ...]) -> Measure:
        """One run to its end. Raises AssertionError with all that was printed when it fails."""
        before = self.commands()
        text, took = taken(lambda: self._pulumi(*words))
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

    def _pulumi(self, *words: str) -> str:
        done = subprocess.run(
            ["pulumi", *words, "--stack", self.name, "--non-interactive", "--color", "never"],
            cwd=self.folder,
            env=dict(self.environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
        assert done.returncode == 0, done.stdout
        return done.stdout


def main() -> int:
    """Exit code: 0 when what changes nothing meets the goal."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--nodes", type=int, default=1000)
    nodes: int = parser.parse_args().nodes
    # So that hollow workers end when a supervisor ends this.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    pairs: list[tuple[Measure, Measure]] = []
    with tempfile.TemporaryDirectory(prefix="kube-ha-") as name:
        folder = Path(name)
        say("the example, never applied")
        example = _of_project(examples.thousand(folder / "example", limit_s=LIMIT_S), "thousand")
        first = example.run("preview of the example", PREVIEW)
        empty = _floor(folder)
        empty.set(count=str(first.changes - 1))
        pairs.append((first, _of_project(empty, "test").run("its floor", PREVIEW)))
        workers = nodes - len(MASTERS)
        with hollow_cluster(NAME, SUBNET, workers + 1) as cluster:
            pairs += _life(cluster, empty, workers)
    print(f"\nMachine: {machine()}; {len(MASTERS)} masters, {workers} hollow workers")
    for own, floor in pairs:
        print(f"  {_line(own)}\n  {_line(floor)}")
        ratio = own.taken.processor_s / floor.taken.processor_s
        print(f"    {ratio:.2f} times the floor's processor time")
    quiet = [pair for pair in pairs if not pair[0].changes]
    good = all(own.taken.processor_s <= GOAL * floor.taken.processor_s for own, floor in quiet)
    print(f"  goal: at most {GOAL} where nothing changes: {'met' if good else 'missed'}")
    return 0 if good else 1


def _life(
    cluster: HollowCluster, empty: Project, workers: int
) -> Iterator[tuple[Measure, Measure]]:
    """What happens to the cluster, with the floor of each; what the API felt is printed."""
    made = cluster.stack
    stack = Stack(
        made.name,
        ROOT,
        made.environment | FAST,
        lambda: made.state_file,
        lambda: cluster.workers.commands().total(),
    )
    floor = _of_project(empty, "test")
    # As docs/explain/sizing.md says: first the control plane, with checkpoints.
    control_plane = made.up()
    say(f"{len(MASTERS)} masters in {control_plane.seconds:.1f} s")
    cluster.want(workers)
    first = stack.run(f"{workers} workers join", UP)
    empty.set(count=str(first.resources - 1))
    yield first, floor.run("its floor", UP)
    own, least = (one.state().stat().st_size for one in (stack, floor))
    print(f"  state {own} bytes, {own / workers:.0f} a worker; that of the floor {least} bytes")
    yield stack.run("nothing to do", UP), floor.run("its floor", UP)
    yield stack.run("preview, nothing to do", PREVIEW), floor.run("its floor", PREVIEW)
    cluster.want(workers + 1)
    with _felt(cluster, "one worker more"):
        more = stack.run("one worker more", UP)
    empty.set(count=str(more.resources - 1))
    yield more, floor.run("its floor", UP)
    made.edit("pools.worker.labels", {"example.com/a": "b"})
    with _felt(cluster, "a label on the pool"):
        label = stack.run("a label on the pool", UP)
    yield label, floor.run("its floor, nothing to do", UP)
    dead = range(max(1, workers // 100))
    cluster.workers.switch_off(dead)
    made.edit("kubelet.maxPods", 60)
    with _felt(cluster, f"a setting in waves, {len(dead)} dead"):
        waves = stack.run(f"a setting, {len(dead)} dead", UP)
    yield waves, floor.run("its floor, nothing to do", UP)
    cluster.workers.switch_off(())
    wait_for("the dead are back", lambda: str(cluster.ready()[False] or ""), limit_s=120)
    made.node("master-1").kill()
    with _felt(cluster, "the first master is dead"):
        late = stack.run("the dead are back, the first master is dead", UP)
    yield late, floor.run("its floor, nothing to do", UP)


@contextmanager
def _felt(cluster: HollowCluster, during: str) -> Iterator[None]:
    """How the API servers that run answered meanwhile, and whether a node was taken for dead."""
    with cluster.meanwhile() as felt:
        yield
    print(f"  API during {during}: {felt}")


def _line(found: Measure) -> str:
    memory = ", ".join(f"{kind} {mib}" for kind, mib in sorted(found.taken.mib.items()))
    return (
        f"{found.what:<24} {found.taken.wall_s:7.1f} s, {found.taken.processor_s:7.1f} s of processor, "
        f"{found.changes} of {found.resources} resources, {found.commands} commands; MiB: {memory}"
    )


def _floor(folder: Path) -> Project:
    return replace(Project.make(folder / "floor", NOTHING), limit_s=LIMIT_S)


def _of_project(project: Project, name: str) -> Stack:
    def state() -> Path:
        (file,) = project.folder.glob(f"state/.pulumi/stacks/*/{name}.json")
        return file

    return Stack(name, project.folder, {**project.environment, **FAST}, state)


if __name__ == "__main__":
    sys.exit(main())
