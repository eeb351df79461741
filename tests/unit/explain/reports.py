"""Reports of edits from one config to another."""

from __future__ import annotations

from collections.abc import Mapping

from stacks.edits import memory, transition
from stacks.explain import report
from stacks.explain.report import Report
from tests.unit.configs import planned


def made(before: Mapping[str, object] | None, after: Mapping[str, object]) -> Report:
    """What is told of the edit; None: there is no cluster yet."""
    known = None if before is None else transition.remembered(memory.of(planned(before)))
    wanted = planned(after)
    return report.report(known, wanted, transition.check(known, wanted))
