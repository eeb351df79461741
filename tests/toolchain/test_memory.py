"""What a stack remembers of its last success, through the real engine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.toolchain.project import Project

_ROOT = Path(__file__).resolve().parents[2]
PROGRAM = f"""
import json
import sys

sys.path.insert(0, {str(_ROOT)!r})
import pulumi
from pulumi_command import local

from components import last_applied

config = pulumi.Config()
before = last_applied.read().memory
node = local.Command("node", create=config.get("node") or "true")
wanted = config.require("wanted")
other = pulumi.Stash("other", input=wanted)
gate = local.Command("gate", create="cat", stdin=wanted, opts=pulumi.ResourceOptions(depends_on=[node]))
proved = pulumi.Output.all(gate.stdin, gate.stdout).apply(lambda known: known[0] == wanted)
pulumi.export("applied", last_applied.remember({{"wanted": wanted}}, proved, before))
pulumi.export("before", json.dumps(before))
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project.make(tmp_path / "project", PROGRAM)
    made.set(wanted="first")
    return made


def test_a_success_is_remembered(project: Project) -> None:
    project.up().succeeded()
    assert json.loads(project.output("applied")) == {"wanted": "first"}
    project.set(wanted="second")
    project.up().succeeded()
    assert json.loads(project.output("before")) == {"wanted": "first"}
    assert json.loads(project.output("applied")) == {"wanted": "second"}


@pytest.mark.parametrize("words", [[], ["--continue-on-error"]], ids=["stops", "continues"])
def test_a_failure_keeps_the_last_success(project: Project, words: list[str]) -> None:
    project.up().succeeded()
    project.set(wanted="second", node="false")
    assert project.pulumi("up", "--yes", "--skip-preview", *words).code != 0
    assert json.loads(project.output("applied")) == {"wanted": "first"}

    project.set(node="")
    project.up().succeeded()
    assert json.loads(project.output("before")) == {"wanted": "first"}
    assert json.loads(project.output("applied")) == {"wanted": "second"}


def test_a_first_up_that_fails_is_no_success(project: Project) -> None:
    project.set(node="false")
    assert project.pulumi("up", "--yes", "--skip-preview", "--continue-on-error").code != 0
    project.set(node="")
    project.up().succeeded()
    assert project.output("before") == "null"
    assert json.loads(project.output("applied")) == {"wanted": "first"}


@pytest.mark.parametrize(
    "words",
    [
        ["up", "--target", "**::other"],
        ["up", "--exclude", "**::gate"],
        ["refresh", "--run-program"],
    ],
    ids=["target", "exclude", "refresh"],
)
def test_an_update_that_leaves_out_the_gate_is_no_success(
    project: Project, words: list[str]
) -> None:
    """The outputs of a stack are stored all the same, and the gate gives back what it was."""
    project.up().succeeded()
    project.set(wanted="second")
    project.pulumi(*words, "--yes", "--skip-preview").succeeded()
    assert json.loads(project.output("applied")) == {"wanted": "first"}
    project.up().succeeded()
    assert json.loads(project.output("applied")) == {"wanted": "second"}


ONCE = f"""
import sys

sys.path.insert(0, {str(_ROOT)!r})
import pulumi
from pulumi_command import local

from components.ssh.commands import ANY_CHANGE

config = pulumi.Config()
more = dict(interpreter=["/bin/bash", "-c"]) if config.get("more") else dict()
local.Command(
    "once",
    create=f"echo run >>{{config.require('log')}}; : {{config.require('wanted')}}",
    stdin=config.require("wanted"),
    opts=pulumi.ResourceOptions(ignore_changes=list(ANY_CHANGE)),
    **more,
)
"""


def test_what_runs_once_takes_no_notice_of_any_property(tmp_path: Path) -> None:
    project = Project.make(tmp_path / "project", ONCE)
    log = tmp_path / "log"
    project.set(wanted="first", log=str(log))
    project.up().succeeded()
    project.set(wanted="second", more="yes")
    assert not [op for name, op in project.changes().items() if name == "once"]
    project.up().succeeded()
    assert log.read_text() == "run\n"
