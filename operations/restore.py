"""`python -m operations.restore STACK`: etcd starts again, by a snapshot or by one member's data.

Everything that can be known to be wrong is refused before anything is touched. One machine then
holds a new cluster of one member; the others that are prepared join it, control planes start again.
What was on the machines is set aside. Interrupted, the same command continues where it stopped.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from operations import backup, verify
from operations.engine import stack
from operations.engine.engine import StackError
from operations.engine.stack import Stack
from operations.etcd_snapshots import object_store, restore_checks, snapshot_file, transfer
from operations.etcd_snapshots.restore_checks import Found, Wish
from operations.ssh import client
from operations.ssh.client import Answer
from stacks.cluster import artifacts
from stacks.cluster.artifacts import ArtifactError
from stacks.cluster.plan import Node
from stacks.phases import downloads, etcd_member

_FOLDER = Path(".local/backups")
_THERE = "/var/lib/kube-ha/restore/snapshot.db"  # on the machine where the new cluster begins
_LOOK_S = 60
_STEP_S = 900
_DIVERT_S = 90
_AT_ONCE = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    plain: Path
    total: str  # SHA-256
    size: int  # bytes
    revision: str = ""  # that its name says; empty: it says none


def main(arguments: list[str]) -> int:
    """Print what is done, machine by machine; exit code 1 when something is refused or fails."""
    given = _parser().parse_args(arguments)
    try:
        found = stack.read(given.stack, applied=True, whole=False).of_seed(given.seed)
        first = given.source or found.plan.etcd[0].name
        wish = Wish(
            on=given.on or first,
            source=given.source or "",
            dead=tuple(given.without.replace(",", " ").split()),
            replace=given.replace,
        )
        with tempfile.TemporaryDirectory(prefix="kube-ha-") as folder:
            key = object_store.key_of(found, unauthenticated=given.unauthenticated)
            file = _file(found, given.stack, given.snapshot, key)
            return restore(
                found,
                wish,
                file,
                Path(folder),
                unmarked=given.unmarked,
                unauthenticated=given.unauthenticated,
            )
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
    parser.add_argument("--seed", type=int, help="generation of the seed that the snapshot is of")
    parser.add_argument("--unmarked", action="store_true", help="of no cluster that it names")
    parser.add_argument("--unauthenticated", action="store_true", help="without this stack's seal")
    return parser


def _file(found: Stack, name: str, said: str | None, key: str | None) -> Path | None:
    """What is to be restored, brought here where it is in the object store."""
    if said is None or not said.startswith(object_store.SCHEME):
        return None if said is None else Path(said)
    file = object_store.taken(object_store.of(found, name), said, _FOLDER / name, key)
    print(f"{file.name} is brought to {file.parent}")
    return file


def restore(
    found: Stack,
    wish: Wish,
    file: Path | None,
    folder: Path,
    *,
    unmarked: bool = False,
    unauthenticated: bool = False,
) -> int:
    """Checks, then the steps; the exit code of the acceptance check. Raises StackError."""
    _refuse(restore_checks.unknown(found.plan, wish))
    sealed = found.plan.spec.etcd.backup.encrypt and not unauthenticated
    taken = None
    if file is not None:
        taken = _opened(found, file, folder, unmarked=unmarked, sealed=sealed)
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
        print(f"should this be interrupted, say SNAPSHOT={kept} UNMARKED=1 in place of FROM")
        taken = _opened(found, kept, folder, unmarked=True, sealed=sealed)
    steps = Steps(found, wish, told, taken)
    if restore_checks.is_resumed(told[wish.on], taken.total):
        print(f"{wish.on} serves what this snapshot holds already: the rest continues")
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

    def divert(self) -> None:
        """No HAProxy points to machines that are gone, should they come back."""
        plan = self.found.plan
        gone = {"GONE": " ".join(self.wish.dead)}
        nodes = [
            node
            for node in plan.nodes
            if node.name in self.found.targets and node.name not in self.wish.dead
        ]

        def one(node: Node) -> Answer:
            values = {**self.found.identity(node), **_values(node, "divert"), **gone}
            target = self.found.targets[node.name]
            return client.run(target, "restore", values, limit_s=_DIVERT_S)

        if self.wish.dead:
            with ThreadPoolExecutor(_AT_ONCE) as pool:
                for node, answer in zip(nodes, pool.map(one, nodes), strict=True):
                    if answer.status:
                        print(f"{node.name}: its HAProxy was not changed: {answer.text}")

    def begin(self) -> None:
        """The snapshot at its place and proved, etcd stopped everywhere, a new cluster of one."""
        self.divert()
        first = self.found.plan.node(self.wish.on)
        transfer.send(self.found.targets[first.name], self.taken.plain, _THERE)
        values = _values(first, "check", self.taken.total)
        self._run(first, "restore", {**values, "REVISION": self.taken.revision})
        for node in self.found.plan.masters:
            if node.name not in self.wish.dead and self.told[node.name].is_master:
                self._step(node, "quiet")
        for node in self._members():
            if self.told[node.name].is_ready or self.told[node.name].has_data:
                self._step(node, "stop")
        epoch = restore_checks.next_epoch(self.told, time.time())
        given = _values(first, "restore", self.taken.total) | {"EPOCH": str(epoch)}
        self._run(first, "restore", given)

    def join(self) -> None:
        """The other members join it as new ones; whoever has an API server starts it again."""
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
            print(_since(self.found))
            return verify.verify(self.found)
        print(
            f"etcd serves on {self.wish.on}; not there yet: {', '.join(dict.fromkeys(left))}\n"
            "  do: run pulumi up, with converge.generation raised since they were lost: it makes "
            "them again"
        )
        if self.wish.dead:
            lost = "; ".join(
                f"pulumi config set --path 'kube-ha:nodes.{name}.state' lost"
                for name in self.wish.dead
            )
            print(f"  or, where they are gone for good, say so before that: {lost}")
        return 0

    def _members(self) -> list[Node]:
        return [node for node in self.found.plan.etcd if node.name not in self.wish.dead]

    def _join(self, node: Node) -> None:
        plan = self.found.plan
        files = artifacts.files(plan, node.arch, root=Path())
        values = {
            **etcd_member.of_member(plan, node),
            "ARTEFACTS": downloads.artefacts(files, ("etcd",)),
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
        answer = client.run(self.found.targets[node.name], phase, given, limit_s=_STEP_S)
        if answer.status:
            raise StackError(
                f"{node.name}: {answer.text}\n  do: fix that and run the same command again"
            )
        for line in answer.text.splitlines():
            print(line, flush=True)


def _since(found: Stack) -> str:
    """What the stack remembers and the cluster does not, and the edit that brings both together."""
    generation = found.plan.spec.converge.generation + 1
    return (
        "the cluster is that of the snapshot: nodes, labels, add-ons and refusals of lost machines "
        "that pulumi up has made since are not in it, and a plain pulumi up does not know that\n"
        f"  do: set kube-ha:converge.generation to {generation} and run pulumi up: it asserts all "
        "of them again, and a node that is younger than the snapshot registers again; until then "
        "the check that follows may miss that one's pod"
    )


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
        return restore_checks.read(client.run(target, "restore", values, limit_s=_LOOK_S))

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return dict(zip(nodes, pool.map(one, nodes.values()), strict=True))


def _opened(found: Stack, file: Path, folder: Path, *, unmarked: bool, sealed: bool) -> Snapshot:
    plain = snapshot_file.opened(file, found.backup_key, folder, sealed=sealed)
    snapshot_file.check(
        plain,
        named=file,
        cluster=found.plan.spec.cluster.name,
        cluster_id=found.cluster_id,
        unmarked=unmarked,
    )
    return Snapshot(
        plain=plain,
        total=snapshot_file.digest(plain),
        size=plain.stat().st_size,
        revision=snapshot_file.revision_named(file),
    )


def _refuse(problems: Sequence[str]) -> None:
    if problems:
        listed = "\n".join(f"  - {problem}" for problem in problems)
        raise StackError(f"nothing was touched:\n{listed}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
