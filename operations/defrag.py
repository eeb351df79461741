"""`python -m operations.defrag STACK`: etcd's databases give back the space that is free inside.

One member after the other, the leader last; then an alarm NOSPACE is ended, where there is room.
"""

from __future__ import annotations

import argparse
import sys

from operations.engine import stack
from operations.engine.engine import StackError
from operations.engine.stack import Stack
from operations.ssh import client

_LIMIT_S = 3 * 3600  # of etcd with several members of 8 GiB
_BEGUN = "begun"  # the line after which no other machine would do better


def main(arguments: list[str]) -> int:
    """Print what each member gave back; exit code 1 where something is left to do."""
    parser = argparse.ArgumentParser(prog="python -m operations.defrag", description=__doc__)
    parser.add_argument("stack", help="name of the stack, as prod for Pulumi.prod.yaml")
    given = parser.parse_args(arguments)
    try:
        defragment(stack.read(given.stack, applied=True, whole=False))
    except StackError as error:
        sys.stderr.write(f"ERROR {error}\n")
        return 1
    return 0


def defragment(found: Stack) -> None:
    """By the first etcd machine that has a quorum; it asks all members. Raises StackError."""
    members = " ".join(f"{node.name}={node.address}" for node in found.plan.etcd)
    troubles = []
    for node in found.plan.etcd:
        if node.name not in found.targets:
            continue
        values = {**found.identity(node), "ADDRESS": node.address, "MEMBERS": members}
        answer = client.run(found.targets[node.name], "defrag", values, limit_s=_LIMIT_S)
        lines = [line for line in answer.text.splitlines() if line != _BEGUN]
        if answer.status == 0:
            print("\n".join(lines))
            return
        troubles += [f"{node.name}:", *lines]
        if _BEGUN in answer.text.splitlines():
            break
    raise StackError("\n".join(["etcd is not as it should be yet", *troubles]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
