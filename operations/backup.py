"""`python -m operations.backup STACK`: a verified snapshot of etcd, now, on this computer.

Or one that is in the stack's object store, or the names of all that are there.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from operations.engine import stack
from operations.engine.engine import StackError
from operations.engine.stack import Stack
from operations.etcd_snapshots import object_store, snapshot_file, transfer
from operations.ssh import client
from stacks.cluster.plan import Node
from stacks.phases import etcd_member

_FOLDER = Path(".local/backups")
_LIMIT_S = 1800


class NotSentError(StackError):
    """A snapshot that is here, and did not get to the object store; the text says where and why."""


def main(arguments: list[str]) -> int:
    """Print where the snapshot lies; exit code 1 when there is none."""
    parser = argparse.ArgumentParser(prog="python -m operations.backup", description=__doc__)
    parser.add_argument("stack", help="name of the stack, as prod for Pulumi.prod.yaml")
    parser.add_argument("--to", type=Path, help=f"folder; default: {_FOLDER}/STACK")
    other = parser.add_mutually_exclusive_group()
    other.add_argument("--list", action="store_true", help="names of what is in the object store")
    other.add_argument("--snapshot", metavar="store:NAME", help="fetch that one; store:latest")
    parser.add_argument("--unauthenticated", action="store_true", help="the latest of any origin")
    given = parser.parse_args(arguments)
    folder = given.to or _FOLDER / given.stack
    try:
        machines = not given.list and not given.snapshot
        found = stack.read(given.stack, applied=True, whole=False, connects=machines)
        if given.list:
            print("\n".join(object_store.of(found, given.stack).names()))
        elif given.snapshot:
            store = object_store.of(found, given.stack)
            key = object_store.key_of(found, unauthenticated=given.unauthenticated)
            print(object_store.taken(store, given.snapshot, folder, key))
        else:
            print(back_up(found, folder))
    except StackError as error:
        sys.stderr.write(f"ERROR {error}\n")
        return 1
    return 0


def back_up(found: Stack, folder: Path) -> Path:
    """By the first etcd machine that can: the file, in `folder`. Raises StackError."""
    troubles = []
    for node in found.plan.etcd:
        if node.name not in found.targets:
            continue
        try:
            return save(found, node, folder, reason="manual")
        except NotSentError:
            raise  # it is here; another machine would meet the same store
        except StackError as error:
            troubles.append(f"{node.name}: {error}")
    raise StackError("\n".join(["no etcd machine could save a snapshot", *troubles]))


def save(found: Stack, node: Node, folder: Path, *, reason: str) -> Path:
    """Let that machine save a snapshot, and bring it to `folder`. Raises StackError."""
    values = {**found.identity(node), **etcd_member.snapshot(found.plan, node), "REASON": reason}
    target = found.targets[node.name]
    answer = client.run(target, "snapshot", values, limit_s=_LIMIT_S)
    rows = [line.split("\t") for line in answer.text.splitlines()]
    told = next((row for row in rows if row[0] == "snapshot" and len(row) == 5), None)
    if told is None:
        raise StackError(answer.text or "no answer")
    _, path, total, size, revision = told
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)
    file = folder / Path(path).name
    part = file.with_name(f".{file.name}.part")
    transfer.fetch(target, path, part)
    if snapshot_file.digest(part) != total:
        part.unlink()
        raise StackError(f"{path} did not arrive as it is on {node.name}\n  do: run it again")
    file.with_name(f"{file.name}.sha256").write_text(f"{total}  {file.name}\n")
    part.rename(file)
    print(f"{node.name} saved revision {revision}, {int(size) / 1024**2:.1f} MiB")
    if answer.status:
        why = answer.text[answer.text.find("ERROR") :] if "ERROR" in answer.text else answer.text
        raise NotSentError(f"{file} is here and whole, but something failed after it:\n{why}")
    return file


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
