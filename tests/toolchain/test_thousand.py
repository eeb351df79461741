"""The real engine previews examples/thousand.yaml; tests/bench/thousand.py tells how long it takes."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from stacks.config import handed_over
from tests.toolchain import examples
from tests.toolchain.project import Project

pytestmark = pytest.mark.slow

LIMIT_S = 600  # on a computer that is busy with other tests, too
NODES, MASTERS = 1000, 5
ON_EACH = "command:remote:CopyToRemote"
COMMAND = "command:remote:Command"


def test_a_thousand_machines_are_previewed(tmp_path: Path) -> None:
    """What the recording engine cannot show: that the config gets to the program, what is kept from people, and what the engine
    keeps of each resource beside its values."""
    project = examples.thousand(tmp_path / "thousand", limit_s=LIMIT_S)
    ran = project.pulumi("preview", "--stack", "thousand", "--json").succeeded()
    told = json.loads(ran.text[ran.text.index("{") :])
    assert "5 masters, 5 etcd members, 995 workers" in told["diagnostics"][0]["message"]
    steps = [step for step in told["steps"] if step["op"] != "read"]
    assert {step["op"] for step in steps} == {"create"}
    made = Counter(step["newState"]["type"] for step in steps)
    assert made[ON_EACH] == NODES
    # Of a worker: preflight, node, join; the rest is of masters and of the cluster.
    assert 0 < made[COMMAND] - 3 * (NODES - MASTERS) < 100
    assert sum(made.values()) - made[ON_EACH] - made[COMMAND] < 250
    connections = [step["newState"].get("inputs", {}).get("connection") for step in steps]
    assert Counter(map(str, connections))["[secret]"] == made[ON_EACH] + made[COMMAND]
    key = (project.folder / "key").read_text().splitlines()[1]
    assert key not in ran.text
    kept = {step["newState"]["type"] for step in steps if "stackTrace" in step["newState"]}
    assert not kept & {ON_EACH, COMMAND}


def test_the_engine_takes_what_the_plan_says_that_it_takes(tmp_path: Path) -> None:
    """At the limit the program starts; a little above it none does, and nothing says why."""
    project = Project.make(
        tmp_path / "project", "import os; print('got', len(os.environ['PULUMI_CONFIG']))"
    )
    file = project.folder / "Pulumi.test.yaml"
    salt = file.read_text() if file.exists() else ""
    for over, fits in ((-1, True), (2048, False)):
        room = handed_over.LIMIT + over - handed_over.size({"tiny:x": {"a": ""}})
        config = {"tiny:x": {"a": "x" * room}}
        assert (handed_over.size(config) <= handed_over.LIMIT) is fits
        file.write_text(f"{salt}\nconfig: {json.dumps(config)}\n")
        ran = project.pulumi("preview")
        assert (ran.code == 0) is fits, ran.text[-2000:]
        assert ("got" in ran.text) is fits
