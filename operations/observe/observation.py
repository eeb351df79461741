"""One look at a stack: its config, what its machines answered, and what differs."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from operations.engine import stack
from operations.engine.engine import StackError
from operations.engine.stack import Stack
from operations.observe import differences, pending, probe
from operations.observe.differences import Report
from operations.observe.probe import Findings
from stacks.cluster.plan import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    stack: str  # its name
    plan: Plan
    findings: Findings
    report: Report
    not_applied: tuple[str, ...]  # edits of the config
    now: datetime


def take(name: str) -> Look:
    """Ask every machine of a stack. Raises StackError."""
    return of(name, stack.read(name, applied=False, whole=False))


def of(name: str, found: Stack) -> Look:
    """The same of a stack that was read."""
    findings, now = probe.ask(found), datetime.now(UTC)
    return Look(
        stack=name,
        plan=found.plan,
        findings=findings,
        report=differences.compare(found.plan, findings, now=now),
        not_applied=tuple(pending.pending(found.remembered, found.plan)),
        now=now,
    )


def tell(
    arguments: Sequence[str],
    *,
    name: str,
    about: str | None,
    document: Callable[[Look], Mapping[str, object]],
    lines: Callable[[Look], Sequence[str]],
    code: Callable[[Look], int],
) -> int:
    """Look at the stack that is named, print lines or JSON. The exit code: 2 without a look."""
    parser = argparse.ArgumentParser(prog=f"python -m operations.{name}", description=about)
    parser.add_argument("stack", help="name of the stack, as dev for Pulumi.dev.yaml")
    parser.add_argument("--json", action="store_true", help="for programs: docs/operate/drift.md")
    said = parser.parse_args(arguments)
    try:
        seen = take(said.stack)
    except StackError as error:
        sys.stderr.write(f"ERROR {error}\n")
        return 2
    print(json.dumps(document(seen), indent=2) if said.json else "\n".join(lines(seen)))
    return code(seen)
