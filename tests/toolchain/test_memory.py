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
before = last_applied.read()
node = local.Command("node", create=config.get("node") or "true")
gate = local.Command("gate", create="echo " + config.require("wanted"), opts=pulumi.ResourceOptions(depends_on=[node]))
pulumi.export("applied", last_applied.remember({{"wanted": config.require("wanted")}}, gate, before))
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


@pytest.mark.parametrize("words", [[], ["--continue-on-error"]], ids=["stops", "goes on"])
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
