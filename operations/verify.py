"""`python -m operations.verify STACK`: the acceptance check on a cluster, through any master."""

from __future__ import annotations

import argparse
import sys

from operations.engine import stack
from operations.engine.engine import StackError
from operations.engine.stack import Stack
from operations.ssh import client
from stacks.phases.gate import of_gate

_LIMIT_S = 900


def main(arguments: list[str]) -> int:
    """Print the report of the first master that can be reached; exit code 1 when it fails."""
    parser = argparse.ArgumentParser(prog="python -m operations.verify", description=__doc__)
    parser.add_argument("stack", help="name of the stack, as dev for Pulumi.dev.yaml")
    try:
        found = stack.read(parser.parse_args(arguments).stack, applied=True)
    except StackError as error:
        sys.stderr.write(f"ERROR {error}\n")
        return 1
    return verify(found)


def verify(found: Stack) -> int:
    """Run the gate phase on the first master that can be reached."""
    unreachable = []
    for node in found.plan.masters:
        values = {**found.identity(node), **of_gate(found.plan)}
        answer = client.run(found.targets[node.name], "gate", values, limit_s=_LIMIT_S)
        if answer.reached:
            print(answer.text)
            return 0 if answer.status == 0 else 1
        unreachable.append(f"{node.name} ({node.address}): {answer.text or 'no answer'}")
        print(f"{node.name} cannot be reached over SSH, any other master will do")
    print("ERROR no master can be reached over SSH:")
    print("\n".join(f"  - {line}" for line in unreachable))
    print("  do: see that the machines run, and that this computer reaches their SSH port")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
