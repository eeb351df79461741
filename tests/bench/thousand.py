"""What many nodes cost: examples/thousand.yaml previewed, and as many machines as you like played.

    python -m tests.bench.thousand [--nodes 1000]

Each figure stands beside that of as many resources that are nothing (local commands, `true`), with
the same engine in the same run: the floor. Real are the engine, the program, its plugins, SSH and
the state. Played are the machines: a process of this computer answers SSH on their addresses, reads
what each command is told and says that it succeeded (tests/bench/played.py). So phases take no time
and no cluster comes to be: what machines and Kubernetes take is measured elsewhere. Checkpoints are
off (PULUMI_SKIP_CHECKPOINTS): with them a state in a file grows with the square of the nodes.
Let nothing else run on this computer.
"""

from __future__ import annotations

import argparse
import json
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from tests.bench import played
from tests.bench.create import machine, say
from tests.bench.processes import Taken, taken
from tests.toolchain import examples
from tests.toolchain.project import Project

MASTERS = 3
LIMIT_S = 4 * 3600  # of one run of the engine
READY_S = 60
# The goal for what changes nothing, by processor time.
GOAL = 1.5
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
    commands: int = 0  # on machines


@dataclass(slots=True)
class Stack:
    """A stack whose runs are measured."""

    project: Project
    name: str
    log: Path | None  # of commands on machines

    def run(self, what: str, words: tuple[str, ...]) -> Measure:
        before = self._commands()
        ran, took = taken(lambda: self.project.pulumi(*words, "--stack", self.name).succeeded())
        # The plan that is printed before has numbers of its own.
        said = ran.text.rpartition("Resources:")[2]
        changes = sum(map(int, re.findall(r"^ +(?:[~+-]|\+-) (\d+) ", said, re.MULTILINE)))
        same = re.search(r"(\d+) unchanged", said)
        out = Measure(
            what=what,
            taken=took,
            resources=changes + (int(same[1]) if same else 0),
            changes=changes,
            commands=self._commands() - before,
        )
        say(_line(out))
        return out

    def state(self) -> int:
        """Bytes of the state as the file backend keeps it."""
        (file,) = self.project.folder.glob(f"state/.pulumi/stacks/*/{self.name}.json")
        return file.stat().st_size

    def _commands(self) -> int:
        return len(self.log.read_text().splitlines()) if self.log else 0


def main() -> int:
    """Exit code: 0 when what changes nothing meets the goal."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--nodes", type=int, default=1000)
    nodes: int = parser.parse_args().nodes
    # So that played machines end when a supervisor ends this.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    pairs: list[tuple[Measure, Measure]] = []
    with tempfile.TemporaryDirectory(prefix="kube-ha-") as name:
        folder = Path(name)
        say("the example, never applied")
        example = Stack(examples.thousand(folder / "example", limit_s=LIMIT_S), "thousand", None)
        first = example.run("preview of the example", PREVIEW)
        floor = _floor(folder)
        floor.project.set(count=str(first.changes - 1))
        pairs.append((first, floor.run("its floor", PREVIEW)))
        with _machines(folder / "machines", nodes + 1) as there:
            pairs += _life(_stack(folder, there, nodes), floor, nodes)
    print(f"\nMachine: {machine()}; {MASTERS} masters and {nodes - MASTERS} workers, all played")
    for own, empty in pairs:
        print(f"  {_line(own)}\n  {_line(empty)}")
        ratio = own.taken.processor_s / empty.taken.processor_s
        print(f"    {ratio:.2f} times the floor's processor time")
    quiet = [pair for pair in pairs if not pair[0].changes]
    good = all(own.taken.processor_s <= GOAL * empty.taken.processor_s for own, empty in quiet)
    print(f"  goal: at most {GOAL} where nothing changes: {'met' if good else 'missed'}")
    return 0 if good else 1


def _life(stack: Stack, floor: Stack, nodes: int) -> Iterator[tuple[Measure, Measure]]:
    first = stack.run("first up", UP)
    floor.project.set(count=str(first.resources - 1))
    yield first, floor.run("its floor", UP)
    own, empty = stack.state(), floor.state()
    print(f"  state {own} bytes, {own / nodes:.0f} a node; that of the floor {empty} bytes")
    yield stack.run("nothing to do", UP), floor.run("its floor", UP)
    yield stack.run("preview, nothing to do", PREVIEW), floor.run("its floor", PREVIEW)
    _write(stack.project, stack.name, nodes + 1)
    more = stack.run("one worker more", UP)
    floor.project.set(count=str(more.resources - 1))
    yield more, floor.run("its floor", UP)
    _write(stack.project, stack.name, nodes + 1, labels={"example.com/a": "b"})
    yield stack.run("a label on the pool", UP), floor.run("its floor, nothing to do", UP)


def _line(found: Measure) -> str:
    memory = ", ".join(f"{kind} {mib}" for kind, mib in sorted(found.taken.mib.items()))
    return (
        f"{found.what:<24} {found.taken.wall_s:7.1f} s, {found.taken.processor_s:7.1f} s of processor, "
        f"{found.changes} of {found.resources} resources, {found.commands} commands; MiB: {memory}"
    )


def _floor(folder: Path) -> Stack:
    made = Project.make(folder / "floor", NOTHING)
    environment = {**made.environment, "PULUMI_SKIP_CHECKPOINTS": "true"}
    return Stack(replace(made, limit_s=LIMIT_S, environment=environment), "test", None)


@contextmanager
def _machines(folder: Path, count: int) -> Iterator[Path]:
    """Played ones, by their folder."""
    folder.mkdir()
    words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(folder / "key")]
    subprocess.run(words, check=True)
    (folder / played.COMMANDS).touch()
    route = ["local", played.NETWORK, "dev", "lo"]
    subprocess.run(["ip", "route", "replace", *route], check=True)
    words = [sys.executable, "-m", "tests.bench.played", str(folder), str(count)]
    with subprocess.Popen(words, cwd=examples.ROOT) as server:
        try:
            end = time.monotonic() + READY_S
            while not (folder / played.READY).exists():
                if server.poll() is not None or time.monotonic() > end:
                    raise RuntimeError(f"played machines do not answer in {READY_S} s")
                time.sleep(0.1)
            yield folder
        finally:
            server.terminate()
            subprocess.run(["ip", "route", "del", *route], check=True)


def _stack(folder: Path, there: Path, nodes: int) -> Stack:
    made = examples.program(folder / "played", limit_s=LIMIT_S)
    for name in ("key", "key.pub", played.HOST_KEYS):
        (made.folder / name).unlink(missing_ok=True)
        (made.folder / name).symlink_to(there / name)
    environment = {**made.environment, "PULUMI_SKIP_CHECKPOINTS": "true"}
    made = replace(made, environment=environment)
    _write(made, "played", nodes)
    made.pulumi("stack", "init", "played").succeeded()
    return Stack(made, "played", there / played.COMMANDS)


def _write(
    project: Project, stack: str, nodes: int, labels: Mapping[str, str] | None = None
) -> None:
    """The stack file and its hosts; the engine's own lines in it stay."""
    keys = (project.folder / played.HOST_KEYS).read_text().splitlines()

    def host(name: str, number: int) -> dict[str, str]:
        inner = f"172.20.{number // 250}.{1 + number % 250}"
        return {
            "name": name,
            "address": inner,
            "sshAddress": played.address(number),
            "hostKey": keys[number],
        }

    masters = [host(f"master-{number + 1}", number) for number in range(MASTERS)]
    workers = [host(f"worker-{number - MASTERS + 1}", number) for number in range(MASTERS, nodes)]
    rows = [",".join(masters[0]), *(",".join(one.values()) for one in workers)]
    (project.folder / "workers.csv").write_text("\n".join(rows) + "\n")
    ssh = {"user": "root", "port": played.PORT, "privateKeyFile": str(project.folder / "key")}
    config: dict[str, object] = {
        "cluster": {"name": "played", "kubernetes": "1.36.3", "podCidr": "10.128.0.0/13"},
        "machines": {"provider": "adopt", "ssh": ssh},
        "mirror": {
            "url": "http://172.20.0.5:8080",
            "registry": "http://172.20.0.5:5000",
            "manifest": ".local/bundle/manifest.json",
        },
        "pools": {
            "master": {"roles": ["etcd", "master"], "hosts": masters},
            "worker": {"roles": ["worker"], "hostsFile": "workers.csv", "labels": labels or {}},
        },
    }
    file = project.folder / f"Pulumi.{stack}.yaml"
    salt = re.findall(r"^encryptionsalt: .*$", file.read_text(), re.M) if file.exists() else []
    said = {"config": {f"kube-ha:{name}": value for name, value in config.items()}}
    # JSON is YAML, too.
    lines = [*salt, f"config: {json.dumps(said['config'])}"]
    file.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    sys.exit(main())
