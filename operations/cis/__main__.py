"""`python -m operations.cis STACK`: the CIS benchmark's controls, decided on the machines.

Changes nothing. Exit codes: 0 no scored control fails, 1 one does, 2 could not look everywhere.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from operations.cis import facts, verdicts
from operations.cis.control import BENCHMARK
from operations.cis.controls import CONTROLS, PATHS
from operations.cis.facts import Facts
from operations.cis.verdicts import Judged
from operations.engine import stack
from operations.engine.engine import StackError
from operations.engine.stack import Stack
from operations.observe.answers import UnreadableAnswerError
from operations.ssh import client
from stacks.cluster.plan import Node

_LIMIT_S = 60  # for all questions to one machine
_AT_ONCE = 16  # machines asked in parallel


def main(arguments: Sequence[str]) -> int:
    """Print the table. The exit code."""
    parser = argparse.ArgumentParser(prog="python -m operations.cis", description=__doc__)
    parser.add_argument("stack", help="name of the stack, as dev for Pulumi.dev.yaml")
    parser.add_argument("--format", choices=("text", "json"), default="text")
    said = parser.parse_args(arguments)
    try:
        found = stack.read(said.stack, applied=True, whole=False)
    except StackError as error:
        sys.stderr.write(f"ERROR {error}\n")
        return 2
    judged = look(found)
    if said.format == "json":
        print(json.dumps({"benchmark": BENCHMARK, **verdicts.document(judged)}, indent=2))
    else:
        print("\n".join([f"{BENCHMARK}, stack {said.stack}", *verdicts.table(judged)]))
    return code(judged)


def look(found: Stack) -> list[Judged]:
    """Ask every machine, in parallel, and judge."""
    asked = [node for node in found.plan.nodes if node.in_kubernetes or node.is_etcd]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        told = dict(
            zip(
                (node.name for node in asked),
                pool.map(lambda node: _facts(found, node), asked),
                strict=True,
            )
        )
    concerned = {
        control.id: [node.name for node in asked if control.concerns(node)] for control in CONTROLS
    }
    return verdicts.judge(CONTROLS, concerned, told)


def code(judged: Sequence[Judged]) -> int:
    """Of the exit."""
    if any(verdict.result == "UNKNOWN" for each in judged for verdict in each.verdicts):
        return 2
    return 1 if verdicts.failed(judged) else 0


def _facts(found: Stack, node: Node) -> Facts | None:
    if node.name not in found.targets:
        return None
    told = {
        **found.identity(node),
        "PROCESSES": " ".join(facts.PROCESSES),
        "PATHS": "\n".join(PATHS),
        "TEXTS": "\n".join(facts.TEXTS),
    }
    answer = client.run(found.targets[node.name], "cis", told, limit_s=_LIMIT_S)
    try:
        return facts.read(answer.text) if answer.reached else None
    except UnreadableAnswerError as error:
        sys.stderr.write(f"{node.name}: {error}\n")
        return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
