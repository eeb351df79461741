"""`python -m operations.summary STACK`: what a person needs of its outputs after an update.

All of them: `pulumi stack output`.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Mapping

from operations.engine.engine import Engine, StackError


def main(arguments: list[str]) -> int:
    """Print the lines; exit code 1 when the stack cannot be read."""
    parser = argparse.ArgumentParser(prog="python -m operations.summary", description=__doc__)
    parser.add_argument("stack", help="name of the stack, as prod for Pulumi.prod.yaml")
    stack = parser.parse_args(arguments).stack
    try:
        print("\n".join(lines(stack, Engine(stack).outputs())))
    except StackError as error:
        sys.stderr.write(f"ERROR {error}\n")
        return 1
    return 0


def lines(stack: str, outputs: Mapping[str, object]) -> Iterator[str]:
    """Nodes, API, load balancer, and where the kubeconfig comes from; `outputs`: by name."""
    nodes = _mapping(outputs.get("nodes"))
    roles = Counter(role for node in nodes.values() for role in _list(_mapping(node).get("roles")))
    counts = ", ".join(f"{count} {role}" for role, count in roles.items())
    yield f"stack {stack}: {len(nodes)} nodes ({counts})"
    yield f"  API            {outputs.get('endpoint')}"
    known = _mapping(outputs.get("loadBalancer"))
    behind = [_mapping(backend) for backend in _list(known.get("backends"))]
    if behind:
        targets = " ".join(f"{backend.get('address')}:{backend.get('port')}" for backend in behind)
        yield f"  load balancer  {known.get('protocol')} to {targets}"
    yield f"  kubeconfig     make outputs STACK={stack} writes .local/outputs/{stack}/kubeconfig"


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
