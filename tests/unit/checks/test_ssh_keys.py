"""SSH key files: those that no connection could use are refused before one is tried."""

from __future__ import annotations

import errno
import os
import subprocess
from pathlib import Path

import pytest

from stacks.load import load
from tests.unit.configs import adopted, problems

LOCKED = "which nobody is asked for; load it into an agent and set machines.ssh.agent: true in place of it"
KEY_FILES = [
    (None, "does not exist; make one with `ssh-keygen -t ed25519 -N '' -f FILE`"),
    ("ssh-ed25519 AAAA", "holds no private key in PEM or OpenSSH format; that is a public key, leave out .pub"),
    ("hello", "holds no private key in PEM or OpenSSH format"),
    ("-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n", f"is locked by a passphrase, {LOCKED}"),
    ("-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n", f"is locked by a passphrase, {LOCKED}"),
]  # fmt: skip


@pytest.mark.parametrize(("content", "reason"), KEY_FILES)
def test_an_unusable_key_file_is_refused_before_anything_connects(
    tmp_path: Path, content: str | None, reason: str
) -> None:
    file = tmp_path / "key"
    if content is not None:
        file.write_text(content)
    raw = adopted({"machines.ssh": {"privateKeyFile": str(file)}})
    assert problems(raw) == [("machines.ssh.privateKeyFile", f"'{file}' {reason}")]
    assert load(raw, read_keys=False)


def test_a_private_key_file_is_taken_in_place_of_the_agent(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("-----BEGIN OPENSSH PRIVATE KEY-----\n")
    assert load(adopted({"machines.ssh": {"privateKeyFile": str(file)}}))
    both = adopted({"machines.ssh.privateKeyFile": str(file)})
    text = "stands beside privateKeyFile; leave one of them out"
    assert problems(both) == [("machines.ssh.agent", text)]


@pytest.mark.parametrize(("passphrase", "locked"), [("", False), ("secret", True)])
def test_a_key_that_the_ssh_client_made_is_known_to_be_locked_or_not(
    tmp_path: Path,
    passphrase: str,
    locked: bool,  # noqa: FBT001 (a parameter of the table)
) -> None:
    file = tmp_path / "key"
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-f", str(file)]
    subprocess.run(command, check=True, timeout=30)
    raw = adopted({"machines.ssh": {"privateKeyFile": str(file)}})
    if locked:
        expected = f"'{file}' is locked by a passphrase, {LOCKED}"
        assert problems(raw) == [("machines.ssh.privateKeyFile", expected)]
    else:
        assert load(raw)


def test_a_key_file_of_somebody_else_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "key"
    file.write_text("-----BEGIN OPENSSH PRIVATE KEY-----\n")

    def refused(path: object, *_: object) -> int:  # root may read everything
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)

    monkeypatch.setattr(os, "open", refused)
    raw = adopted({"machines.ssh": {"privateKeyFile": str(file)}})
    expected = f"'{file}' cannot be read by you; chown it to yourself, mode 0600"
    assert problems(raw) == [("machines.ssh.privateKeyFile", expected)]


def test_a_folder_is_no_key_file(tmp_path: Path) -> None:
    raw = adopted({"machines.ssh": {"privateKeyFile": str(tmp_path)}})
    expected = f"'{tmp_path}' is not a file; name the private key itself"
    assert problems(raw) == [("machines.ssh.privateKeyFile", expected)]
