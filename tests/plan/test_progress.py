"""Lines of a long update against what the program registers: every step that is counted comes to its end."""

from __future__ import annotations

import json
import re

import pytest

from operations.engine.progress import Progress, steps
from stacks.edits import memory, transition
from tests.plan.settled import Stacks
from tests.plan.told_pairs import Pair, told
from tests.unit.configs import adopted, gcp, lab

_OPERATIONS = {"+": "create", "~": "update", "!": "create-replacement", "-": "delete"}
PAIRS = (
    Pair("lab", None, lab()),
    Pair("adopt", None, adopted()),
    Pair("gcp", None, gcp()),
    Pair("one worker more", lab(), lab({"pools.worker.count": 3})),
    Pair("one worker less", lab(), lab({"pools.worker.count": 1})),
    Pair("an upgrade", adopted({"cluster.kubernetes": "1.35.4"}), adopted()),
)


@pytest.mark.parametrize("pair", [pytest.param(pair, id=pair.name) for pair in PAIRS])
def test_an_update_ends_with_all_its_steps_done(stacks: Stacks, pair: Pair) -> None:
    edit = told(stacks, pair)
    before = transition.remembered(memory.of(edit.then)) if edit.then else None
    progress = Progress(steps(before, edit.plan))
    lines: list[str] = []
    for change in edit.run.changes:
        for kind in ("resourcePreEvent", "resOutputsEvent"):
            about = {"urn": f"urn::{change.name}", "op": _OPERATIONS[change.mark]}
            lines += progress.lines([json.dumps({kind: {"metadata": about}})])
    counts = [re.search(r", (\d+) of (\d+) steps$", line) for line in lines]
    assert lines
    assert [(int(found[1]), int(found[2])) for found in counts if found] == [
        (number, len(lines)) for number in range(1, len(lines) + 1)
    ]
