"""SSH key files of a config: the only thing of the config that lies outside of it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from stacks.problems import Problem

if TYPE_CHECKING:
    from stacks.spec import Spec


def problems(spec: Spec) -> list[Problem]:
    """Key files that are missing, unreadable, or no private keys."""
    ssh = spec.machines.ssh
    files = {"machines.ssh.privateKeyFile": ssh.private_key_file}
    if ssh.bastion is not None:
        files["machines.ssh.bastion.privateKeyFile"] = ssh.bastion.private_key_file
    out = []
    for path, name in files.items():
        reason = _unusable(Path(name).expanduser()) if name is not None else ""
        if reason:
            out.append(Problem(path, f"{name!r} {reason}"))
    return out


def _unusable(file: Path) -> str:
    if not file.exists():
        return "does not exist; make one with `ssh-keygen -t ed25519 -N '' -f FILE`"
    if not file.is_file():
        return "is no file; name the private key itself"
    if not os.access(file, os.R_OK):
        return "cannot be read by you; chown it to yourself, mode 0600"
    head = file.read_bytes()[:100]
    if b"PRIVATE KEY-----" not in head:
        hint = "; that is a public key, leave out .pub" if head.startswith(b"ssh-") else ""
        return f"holds no private key in PEM or OpenSSH format{hint}"
    return ""
