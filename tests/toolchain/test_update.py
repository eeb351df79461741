"""An update with one line a step, on the real engine: lines, exit codes, errors, and Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.toolchain.project import Project

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import os
import pulumi
from pulumi_command import local
for node in ("a", "b"):
    local.Command(f"{node}-step", create=os.environ["RUNS"], opts=pulumi.ResourceOptions())
pulumi.export("said", "at the end")
"""
# As operations.up does, with steps of its own. `test` is the stack of the project.
UP = """
import sys
from operations.engine import update
from operations.engine.engine import Engine
from operations.engine.progress import Progress, Steps
from stacks.order.step import Step
steps = tuple(Step(name=f"{node}-step", kind="phase", phase="node", part="masters") for node in "ab")
progress = Progress(Steps(steps, {step.name: step for step in steps}))
sys.exit(update.run(Engine("test"), ["--yes", "--skip-preview"], progress, extra={}))
"""


@pytest.fixture
def tiny(tmp_path: Path) -> Project:
    return Project.make(tmp_path, PROGRAM)


def start(tiny: Project, runs: str) -> subprocess.Popen[str]:
    (tiny.folder / "up.py").write_text(UP)
    return subprocess.Popen(
        [sys.executable, "up.py"],
        cwd=tiny.folder,
        env={**tiny.environment, "RUNS": runs, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,  # Ctrl-C is sent to the group, as a terminal does
    )


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    text, _ = process.communicate(timeout=90)
    return process.returncode, text


def test_a_step_is_one_line_and_the_engine_sums_up(tiny: Project) -> None:
    code, text = ended(start(tiny, "sleep 1"))
    assert code == 0, text
    (line,) = [line for line in text.splitlines() if "done after" in line]
    assert line.endswith("1 of 1 steps")
    assert "creating" not in text
    assert "at the end" in text
    assert "+ 3 created" in text
    log = tiny.folder / ".local/log/up-test.log"
    assert "creating" in log.read_text()
    assert log.stat().st_mode & 0o777 == 0o600


def test_an_error_is_whole_and_last(tiny: Project) -> None:
    code, text = ended(start(tiny, "echo first reason >&2; echo second reason >&2; exit 7"))
    assert code == 1
    assert "FAILED: node after" in text
    told = text.partition("Diagnostics:")[2]
    assert "first reason" in told
    assert "second reason" in told
    assert text.splitlines()[-1] == "all that the engine printed: .local/log/up-test.log"


def test_an_engine_that_does_not_begin_is_told(tiny: Project) -> None:
    (tiny.folder / "Pulumi.yaml").write_text("name: [")
    code, text = ended(start(tiny, "true"))
    assert code == 1
    assert "error" in text


def test_ctrl_c_ends_it_in_order_and_leaves_no_lock(tiny: Project) -> None:
    process = start(tiny, f"touch {tiny.folder}/began; sleep 60")
    wait_for(tiny.folder / "began")
    os.killpg(process.pid, signal.SIGINT)
    code, text = ended(process)
    assert code not in (0, None), text
    assert text.count("Ctrl-C again ends it at once") == 1
    assert not [*(tiny.folder / "state/.pulumi/locks").rglob("*.json")]
    assert ended(start(tiny, "true"))[0] == 0


def test_a_second_ctrl_c_ends_it_at_once(tiny: Project) -> None:
    runs = f"trap '' INT TERM; touch {tiny.folder}/began; sleep 60"
    process = start(tiny, runs)
    wait_for(tiny.folder / "began")
    began = time.monotonic()
    os.killpg(process.pid, signal.SIGINT)
    time.sleep(2)
    os.killpg(process.pid, signal.SIGINT)
    code, text = ended(process)
    assert code not in (0, None), text
    assert time.monotonic() - began < 30


def wait_for(file: Path) -> None:
    end = time.monotonic() + 60
    while not file.exists():
        assert time.monotonic() < end, f"no {file}"
        time.sleep(0.1)
