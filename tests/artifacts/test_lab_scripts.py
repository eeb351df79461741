"""The lab's scripts in a folder of their own: what make clean, dev and setup do beside the machines."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

LAB = Path(__file__).parents[2] / "lab"
SALT = "encryptionsalt: v1:abc\nconfig: {}\n"
STACK = {"type": "pulumi:pulumi:Stack"}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with the scripts; its machine.sh and builds only write down that they ran."""
    (tmp_path / "lab/image").mkdir(parents=True)
    for name in ("clean.sh", "dev.sh", "engine.sh", "environment.sh", "setup.sh"):
        shutil.copy(LAB / name, tmp_path / "lab" / name)
    (tmp_path / "lab/machine.sh").write_text('echo "$1" >>calls\n')
    (tmp_path / "lab/host.sh").write_text("")
    for name in ("dev", "prod", "elsewhere"):
        (tmp_path / f"Pulumi.{name}.yaml").write_text(SALT)
    (tmp_path / ".local").mkdir()
    (tmp_path / ".local/passphrase").write_text("secret")
    return tmp_path


def state(checkout: Path, name: str, resources: list[dict[str, str]], **more: object) -> Path:
    """The backend's file of a stack."""
    file = checkout / f".local/state/.pulumi/stacks/kube-ha/{name}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"checkpoint": {"latest": {"resources": resources, **more}}}))
    return file


def run(checkout: Path, script: str, code: str = "") -> subprocess.CompletedProcess[str]:
    """Run a script; or its functions, without its last line (`main`), and then `code`."""
    text = (checkout / "lab" / script).read_text()
    if code:
        text = f"{text.rstrip().removesuffix('main')}\n{code}\n"
    (checkout / "lab" / script).write_text(text)
    return subprocess.run(
        ["bash", f"lab/{script}"], cwd=checkout, capture_output=True, text=True, check=False, timeout=60
    )  # fmt: skip


def zipped(file: Path) -> None:
    file.with_name(f"{file.name}.gz").write_bytes(gzip.compress(file.read_bytes()))
    file.unlink()


@pytest.mark.parametrize(
    ("spoil", "text"),
    [
        pytest.param(lambda file: None, "stack prod still has resources", id="as written"),
        pytest.param(zipped, "stack prod still has resources", id="compressed"),
        pytest.param(lambda file: file.write_text('{"check'), "cannot be read", id="cut off"),
    ],
)
def test_clean_refuses_to_take_the_state_of_another_stack(
    checkout: Path, spoil: Callable[[Path], None], text: str
) -> None:
    spoil(state(checkout, "prod", [STACK, {"type": "tls:index/privateKey:PrivateKey"}]))
    clean = run(checkout, "clean.sh")
    assert clean.returncode == 1
    assert clean.stderr.startswith("ERROR clean: ")
    assert text in clean.stderr
    assert "\n  do: " in clean.stderr
    assert (checkout / ".local/passphrase").exists()
    assert not (checkout / "calls").exists(), "no machine was touched"
    assert (checkout / "Pulumi.prod.yaml").read_text() == SALT


def test_clean_refuses_while_a_resource_was_about_to_be_made(checkout: Path) -> None:
    state(checkout, "prod", [STACK], pending_operations=[{"type": "creating"}])
    assert run(checkout, "clean.sh").returncode == 1


def test_clean_takes_empty_stacks_and_the_salts_of_its_passphrase(checkout: Path) -> None:
    state(checkout, "dev", [STACK, {"type": "tls:index/privateKey:PrivateKey"}])
    state(checkout, "prod", [STACK])
    clean = run(checkout, "clean.sh")
    assert clean.returncode == 0, clean.stderr
    assert (checkout / "calls").read_text() == "purge\n"
    assert not (checkout / ".local").exists()
    assert (checkout / "Pulumi.dev.yaml").read_text() == "config: {}\n"
    assert (checkout / "Pulumi.prod.yaml").read_text() == "config: {}\n"
    assert (checkout / "Pulumi.elsewhere.yaml").read_text() == SALT, "another backend's stack"
    assert "What stays on this computer" in clean.stdout
    assert run(checkout, "clean.sh").returncode == 0, "twice"


def test_a_new_passphrase_comes_after_the_old_ones_salt_is_gone(checkout: Path) -> None:
    (checkout / ".local/passphrase").unlink()
    (checkout / "bin").mkdir()
    (checkout / "bin/sed").write_text("#!/bin/sh\nexit 1\n")
    (checkout / "bin/sed").chmod(0o755)
    code = "PATH=$PWD/bin:$PATH exec bash lab/environment.sh"
    cut = subprocess.run(["bash", "-c", code], cwd=checkout, check=False, timeout=60)
    assert cut.returncode == 1
    assert not (checkout / ".local/passphrase").exists()
    assert run(checkout, "environment.sh").returncode == 0
    assert (checkout / "Pulumi.dev.yaml").read_text() == "config: {}\n"


def test_dev_takes_a_dead_lock_away_and_leaves_a_living_one(checkout: Path) -> None:
    lock = checkout / ".local/state/.pulumi/locks/organization/kube-ha/dev/1.json"
    lock.parent.mkdir(parents=True)
    dead = subprocess.Popen(["true"])
    dead.wait()
    lock.write_text(json.dumps({"pid": dead.pid, "hostname": socket.gethostname()}))
    assert run(checkout, "dev.sh", "release_dead_lock").returncode == 0
    assert not lock.exists()
    for text in (json.dumps({"pid": dead.pid, "hostname": "another"}), '{"pi'):
        lock.write_text(text)
        refused = run(checkout, "dev.sh", "release_dead_lock")
        assert refused.returncode == 1
        assert "another pulumi works on stack dev" in refused.stderr
        assert lock.exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_in_setup_ends_the_builds_beside_it(checkout: Path, number: signal.Signals) -> None:
    text, last, _ = (checkout / "lab/setup.sh").read_text().rpartition('main "$@"')
    assert last, "the script's last line is another one"
    steps = "background image bash -c 'echo $$ >pid; sleep 300; true'\ncollect\n"
    (checkout / "lab/setup.sh").write_text(f"{text}\n{steps}")
    setup = subprocess.Popen(
        ["bash", "lab/setup.sh"], cwd=checkout, start_new_session=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        step = int(_awaited(checkout / "pid"))
        # As a terminal does: to the script's process group, in which the step is not.
        os.killpg(setup.pid, number)
        assert setup.wait(timeout=30) != 0
        with pytest.raises(ProcessLookupError):
            os.killpg(step, 0)
    finally:
        if setup.poll() is None:
            os.killpg(setup.pid, signal.SIGKILL)


def _awaited(file: Path) -> str:
    end = time.monotonic() + 20
    while time.monotonic() < end:
        if file.exists() and (text := file.read_text()):
            return text
        time.sleep(0.05)
    raise AssertionError(f"{file} was not written")
