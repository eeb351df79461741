"""The entry of every command on a node: nothing runs on half a transfer or with other scripts."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path

import pytest

from components import script
from tests.scripts.shell import SCRIPTS, VALUES


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """Scripts as on a node, and one more phase that tells that it ran."""
    folder = tmp_path / "scripts"
    shutil.copytree(SCRIPTS, folder)
    for name in ("probe", "leave", "preflight"):
        (folder / f"{name}.sh").write_text('main() { echo "ran $NODE ${TEXT:-}"; cat; }\n')
    return folder


def sum_of(folder: Path, phase: str) -> str:
    text = (folder / "lib.sh").read_bytes() + (folder / f"{phase}.sh").read_bytes()
    return hashlib.sha256(text).hexdigest()[:16]


def run(folder: Path, phase: str, stdin: str) -> tuple[int, str]:
    done = subprocess.run(
        ["bash", str(folder / "run.sh"), phase, "0123abcd"],
        input=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=30,
        check=False,
    )
    return done.returncode, done.stdout


def values(folder: Path, phase: str, **more: str) -> str:
    return script.render({**VALUES, "SCRIPT_SUM": sum_of(folder, phase), **more})


def test_values_arrive_whatever_they_hold(copied: Path) -> None:
    text = 'a\'b "$HOME" `id` $(id) \\ {x}\n*'
    status, out = run(copied, "probe", values(copied, "probe", TEXT=text))
    assert (status, out) == (0, f"ran master-1 {text}\n")


@pytest.mark.parametrize("keep", [0, 1, 40, -1, -2, -5])
def test_half_a_transfer_runs_nothing(copied: Path, keep: int) -> None:
    whole = values(copied, "probe", TEXT="x" * 100)
    status, out = run(copied, "probe", whole[:keep].rstrip("\n") if keep < 0 else whole[:keep])
    if keep == -1:
        assert status == 0  # only the last newline is missing: all values are there
    else:
        assert status == 1
        assert "bytes of values arrived" in out
        assert "ran" not in out


def test_scripts_of_another_plan_are_refused(copied: Path) -> None:
    text = values(copied, "probe")
    with (copied / "lib.sh").open("a") as lib:
        lib.write("# newer\n")
    status, out = run(copied, "probe", text)
    assert status == 1
    assert "not those of this plan" in out
    assert "ran master-1" not in out


@pytest.mark.parametrize("phase", ["leave", "preflight"])
def test_what_keeps_its_first_values_works_with_newer_scripts(copied: Path, phase: str) -> None:
    """Their stdin stays that of the first day: a new connection, or removal, must not need it renewed."""
    text = values(copied, phase)
    with (copied / "lib.sh").open("a") as lib:
        lib.write("# newer\n")
    assert run(copied, phase, text)[0] == 0


def test_a_phase_cannot_read_what_is_left_on_stdin(copied: Path) -> None:
    status, out = run(copied, "probe", values(copied, "probe"))
    assert (status, out) == (0, "ran master-1 \n")
