"""The SSH key of a CI runner: in an agent for as long as one command runs, and nowhere else."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "ci/ssh-key.sh"


@pytest.fixture
def key(tmp_path: Path) -> Path:
    file = tmp_path / "key"
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "ci", "-f", str(file)], check=True
    )
    return file


def run(*command: str, key: str | None) -> subprocess.CompletedProcess[str]:
    given = {name: value for name, value in os.environ.items() if name != "SSH_AUTH_SOCK"}
    return subprocess.run(
        ["bash", str(SCRIPT), *command],
        env=given | ({} if key is None else {"KUBE_HA_SSH_KEY": key}),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


# A secret is often pasted without its last line end.
@pytest.mark.parametrize("end", ["", "\n"])
def test_the_command_has_an_agent_with_the_key(key: Path, end: str) -> None:
    done = run("ssh-add", "-L", key=key.read_text().rstrip("\n") + end)
    assert done.stdout == key.with_suffix(".pub").read_text(), done.stderr


def test_the_key_is_in_no_argument_and_not_in_the_commands_environment(
    key: Path, tmp_path: Path
) -> None:
    piece = tmp_path / "piece"
    piece.write_text(key.read_text().splitlines()[2] + "\n")
    look = f"env | grep -cFf {piece}; cat /proc/[0-9]*/cmdline | grep -acFf {piece}"
    assert run("bash", "-c", look, key=key.read_text()).stdout.split() == ["0", "0"]
    # So that the search is known to find: a process with the piece in its arguments.
    look = f"bash -c 'cat /proc/[0-9]*/cmdline; true' $(cat {piece}) | grep -acFf {piece}"
    assert run("bash", "-c", look, key=None).stdout.split() != ["0"]


def test_the_agent_serves_nobody_after_the_command(key: Path) -> None:
    done = run("bash", "-c", "echo $SSH_AUTH_SOCK; exit 3", key=key.read_text())
    assert done.returncode == 3
    given = os.environ | {"SSH_AUTH_SOCK": done.stdout.strip()}
    asked = subprocess.run(
        ["ssh-add", "-l"], env=given, capture_output=True, text=True, check=False
    )
    assert asked.returncode != 0, asked.stdout


@pytest.mark.parametrize("nothing", [None, ""])
def test_without_a_key_the_command_runs_as_it_is(nothing: str | None) -> None:
    done = run("bash", "-c", "echo ${SSH_AUTH_SOCK:-none} ${KUBE_HA_SSH_KEY-unset}", key=nothing)
    assert done.stdout == "none unset\n"


@pytest.mark.parametrize("broken", ["no key", "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n"])
def test_what_is_no_key_is_told_and_nothing_runs(broken: str, tmp_path: Path) -> None:
    done = run("touch", str(tmp_path / "ran"), key=broken)
    assert done.returncode == 1
    assert "KUBE_HA_SSH_KEY is not a private key" in done.stderr
    assert not (tmp_path / "ran").exists()
