"""One look at a stack: its config, what its machines answered, and what differs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from operations import differences, pending, probe, stack
from operations.differences import Report
from operations.probe import Findings
from stacks.plan import Plan


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
    found = stack.read(name, applied=False, whole=False)
    findings, now = probe.ask(found), datetime.now(UTC)
    return Look(
        stack=name,
        plan=found.plan,
        findings=findings,
        report=differences.compare(found.plan, findings, now=now),
        not_applied=tuple(pending.pending(found.remembered, found.plan)),
        now=now,
    )
