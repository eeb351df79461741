"""`python -m operations.restore STACK`: etcd begins anew, by a snapshot or by one member's data.

Everything that can be known to be wrong is refused before anything is touched. One machine then
holds a new cluster of one member; the others that are prepared join it, control planes begin anew.
What was on the machines is set aside. Broken off, the same command goes on where it stopped.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from operations import (
    backup,
    machine,
    object_store,
    restore_checks,
    snapshot_file,
    stack,
    transfer,
    verify,
)
from operations.engine import StackError
from operations.restore_checks import Found, Wish
from operations.stack import Stack
from stacks import artifacts, desired
from stacks.artifacts import ArtifactError
from stacks.plan import Node

_FOLDER = Path(".local/backups")
_THERE = "/var/lib/kube-ha/restore/snapshot.db"  # on the machine where the new cluster begins
_LOOK_S = 60
_STEP_S = 900
_AT_ONCE = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    plain: Path
    total: str  # SHA-256
    size: int  # bytes


def main(arguments: list[str]) -> int:
    """Print what is done, machine by machine; exit code 1 when something is refused or fails."""
    given = _parser().parse_args(arguments)
    try:
        found = stack.read(given.stack, applied=True, whole=False)
        first = given.source or found.plan.etcd[0].name
        wish = Wish(
            on=given.on or first,
            source=given.source or "",
            dead=tuple(given.without.replace(",", " ").split()),
            replace=given.replace,
        )
        with tempfile.TemporaryDirectory(prefix="kube-ha-") as folder:
            file = _file(found, given.stack, given.snapshot)
            return restore(found, wish, file, Path(folder), unmarked=given.unmarked)
    except (StackError, ArtifactError) as error:
        sys.stderr.write(f"ERROR {error}\n")
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m operations.restore",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("stack", help="name of the stack, as prod for Pulumi.prod.yaml")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument(
        "--snapshot", metavar="FILE", help="as make backup brings it; store:latest, store:NAME"
    )
    what.add_argument("--from", dest="source", metavar="NODE", help="the member that has data")
    parser.add_argument("--on", metavar="NODE", help="where the new cluster begins")
    parser.add_argument("--without", default="", metavar="NODES", help="machines that are gone")
    parser.add_argument("--replace", action="store_true", help="set data aside that is there")
    parser.add_argument("--unmarked", action="store_true", help="of no cluster that it names")
    return parser


def _file(found: Stack, name: str, said: str | None) -> Path | None:
    """What is to be restored, brought here where it lies in the object store."""
    if said is None or not said.startswith(object_store.SCHEME):
        return None if said is None else Path(said)
    file = object_store.taken(object_store.of(found, name), said, _FOLDER / name)
    print(f"{file.name} is brought to {file.parent}")
    return file


def restore(
    found: Stack, wish: Wish, file: Path | None, folder: Path, *, unmarked: bool = False
) -> int:
    """Checks, then the steps; the exit code of the acceptance check. Raises StackError."""
    _refuse(restore_checks.unknown(found.plan, wish))
    taken = None if file is None else _opened(found, file, folder, unmarked=unmarked)
    told = _look(found, wish)
    wanted, size = (taken.total, taken.size) if taken else ("", 0)
    _refuse(
        restore_checks.refusals(
            found.plan, wish, told, cluster_id=found.cluster_id, wanted=wanted, size=size
        )
    )
    if taken is None:
        node = found.plan.node(wish.source)
        kept = backup.save(found, node, _FOLDER / found.plan.spec.cluster.name, reason="survivor")
        print(f"should this break off, say SNAPSHOT={kept} UNMARKED=1 in place of FROM")
        taken = _opened(found, kept, folder, unmarked=True)
    steps = Steps(found, wish, told, taken)
    if restore_checks.is_resumed(told[wish.on], taken.total):
        print(f"{wish.on} serves what this snapshot holds already: the rest goes on")
    else:
        steps.begin()
    steps.join()
    return steps.end()


@dataclass(frozen=True, slots=True)
class Steps:
    """A restore that nothing stands against. Methods raise StackError."""

    found: Stack
    wish: Wish
    told: Mapping[str, Found]
    taken: Snapshot

    def begin(self) -> None:
        """The snapshot at its place and proved, etcd stopped everywhere, a new cluster of one."""
        first = self.found.plan.node(self.wish.on)
        transfer.send(self.found.targets[first.name], self.taken.plain, _THERE)
        self._step(first, "check")
        for node in self._members():
            if self.told[node.name].is_ready or self.told[node.name].has_data:
                self._step(node, "stop")
        self._step(first, "restore")

    def join(self) -> None:
        """The other members join it as new ones; whoever has an API server starts it anew."""
        plan = self.found.plan
        in_turn = sorted(self._members(), key=lambda node: node.name != self.wish.on)
        for node in in_turn:
            if node.name != self.wish.on and self.told[node.name].is_ready:
                self._join(node)
            self._restart(node)
        for node in plan.masters:
            if not node.is_etcd:
                self._restart(node)
        # By the mark of the first one a second run knows how far this one came.
        for node in reversed(in_turn):
            if self.told[node.name].owner:
                self._step(node, "done")

    def end(self) -> int:
        """What is left to pulumi up; where nothing is, the acceptance check."""
        left = [
            node.name
            for node in (*self.found.plan.etcd, *self.found.plan.masters)
            if node.name in self.wish.dead
            or (node.is_etcd and not self.told[node.name].is_ready)
            or (node.is_master and not self.told[node.name].is_master)
        ]
        if not left:
            return verify.verify(self.found)
        print(
            f"etcd serves on {self.wish.on}; not there yet: {', '.join(dict.fromkeys(left))}\n"
            "  do: run pulumi up, with converge.generation raised since they were lost: it makes "
            "them again"
        )
        return 0

    def _members(self) -> list[Node]:
        return [node for node in self.found.plan.etcd if node.name not in self.wish.dead]

    def _join(self, node: Node) -> None:
        plan = self.found.plan
        files = artifacts.files(plan, node.arch, root=Path())
        values = {
            **desired.of_member(plan, node),
            "ARTEFACTS": desired.artefacts(files, ("etcd",)),
            "BOOTSTRAP": "0",
        }
        self._run(node, "etcd-member", values)

    def _restart(self, node: Node) -> None:
        if node.name not in self.wish.dead and self.told[node.name].is_master:
            self._step(node, "restart")

    def _step(self, node: Node, step: str) -> None:
        self._run(node, "restore", _values(node, step, self.taken.total))

    def _run(self, node: Node, phase: str, values: Mapping[str, str]) -> None:
        given = {**self.found.identity(node), **values}
        answer = machine.run(self.found.targets[node.name], phase, given, limit_s=_STEP_S)
        if answer.status:
            raise StackError(
                f"{node.name}: {answer.text}\n  do: mend that and run the same command again"
            )
        for line in answer.text.splitlines():
            print(line, flush=True)


def _values(node: Node, step: str, wanted: str = "", dead: str = "") -> dict[str, str]:
    return {
        "STEP": step,
        "ADDRESS": node.address,
        "SNAPSHOT": _THERE,
        "WANTED": wanted,
        "DEAD": dead,
    }


def _look(found: Stack, wish: Wish) -> dict[str, Found]:
    """What every etcd machine and master tells, those said to be dead too."""
    plan = found.plan
    nodes = {node.name: node for node in (*plan.etcd, *plan.masters)}
    dead = " ".join(nodes[name].address for name in wish.dead)

    def one(node: Node) -> Found:
        target = found.targets.get(node.name)
        if target is None:
            return Found(is_reached=False, trouble="the stack has not made it yet")
        values = {**found.identity(node), **_values(node, "look", dead=dead)}
        return restore_checks.read(machine.run(target, "restore", values, limit_s=_LOOK_S))

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return dict(zip(nodes, pool.map(one, nodes.values()), strict=True))


def _opened(found: Stack, file: Path, folder: Path, *, unmarked: bool) -> Snapshot:
    plain = snapshot_file.opened(file, found.backup_key, folder)
    snapshot_file.check(
        plain,
        named=file,
        cluster=found.plan.spec.cluster.name,
        cluster_id=found.cluster_id,
        unmarked=unmarked,
    )
    return Snapshot(plain=plain, total=snapshot_file.digest(plain), size=plain.stat().st_size)


def _refuse(problems: Sequence[str]) -> None:
    if problems:
        listed = "\n".join(f"  - {problem}" for problem in problems)
        raise StackError(f"nothing was touched:\n{listed}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
