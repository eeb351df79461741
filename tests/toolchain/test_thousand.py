"""The real engine previews examples/thousand.yaml, beside as many resources that are nothing."""

from __future__ import annotations

import json
import re
import resource
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from stacks.config import handed_over
from tests.toolchain.project import Project, Ran

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
# What the program and its files are; the stack file and its hosts are copies.
PARTS = ("__main__.py", "Pulumi.yaml", "stacks", "components", "artifacts")
LIMIT_S = 600  # on a computer that is busy with other tests, too
MOST_TIMES = 2.5  # the floor's processor time; measured: 1.8

# Commands that do nothing.
FLOOR = """
import pulumi
from pulumi_command import local
for number in range(int(pulumi.Config().require("count"))):
    local.Command(f"nothing-{number}", create="true", add_previous_output_in_env=False)
"""


@pytest.fixture
def thousand(tmp_path: Path) -> Project:
    """The program of this checkout as stack `thousand`, never applied."""
    made = Project.make(tmp_path / "thousand", "")
    for name in PARTS:
        (made.folder / name).unlink(missing_ok=True)
        (made.folder / name).symlink_to(ROOT / name)
    (made.folder / ".venv").symlink_to(sys.prefix)
    (made.folder / ".local").symlink_to(ROOT / ".local")
    shutil.copy(ROOT / "examples/thousand.yaml", made.folder / "Pulumi.thousand.yaml")
    for file in (ROOT / "examples").glob("thousand-*.csv"):
        shutil.copy(file, made.folder)
    # Nobody is dialled in a preview; the file only has to name an agent.
    made = replace(
        made, environment={**made.environment, "SSH_AUTH_SOCK": "/nowhere"}, limit_s=LIMIT_S
    )
    made.pulumi("stack", "init", "thousand").succeeded()
    return made


def previewed(project: Project, *words: str) -> tuple[Ran, float]:
    """A preview, and the processor time of all its processes in seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ran = project.pulumi("preview", "--suppress-outputs", *words).succeeded()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ran, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def created(ran: Ran) -> int:
    found = re.search(r"\+ (\d+) to create", ran.text)
    assert found is not None, ran.text[-2000:]
    return int(found[1])


def test_a_thousand_machines_are_previewed_at_the_engines_pace(
    thousand: Project, tmp_path: Path
) -> None:
    ran, used_s = previewed(thousand, "--stack", "thousand")
    assert "5 masters, 5 etcd members, 995 workers" in ran.text
    count = created(ran)
    assert count > 4000
    floor = replace(Project.make(tmp_path / "floor", FLOOR), limit_s=LIMIT_S)
    floor.set(count=str(count - 1))
    nothing, floor_s = previewed(floor)
    assert created(nothing) == count
    assert used_s < MOST_TIMES * floor_s, (
        f"{used_s:.1f} s of processor time, {floor_s:.1f} s of as many empty ones"
    )


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
