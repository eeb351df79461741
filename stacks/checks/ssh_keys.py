"""SSH key files of a config: the only thing of the config that lies outside of it."""

from __future__ import annotations

import base64
import binascii

from stacks.config import local_file
from stacks.config.problems import Problem
from stacks.config.spec import Spec

_OPENSSH = b"openssh-key-v1\0"  # what a private key of that format begins with


def problems(spec: Spec) -> list[Problem]:
    """Key files that are missing, unreadable, or no private keys."""
    ssh = spec.machines.ssh
    files = {"machines.ssh.privateKeyFile": ssh.private_key_file}
    if ssh.bastion is not None:
        files["machines.ssh.bastion.privateKeyFile"] = ssh.bastion.private_key_file
    out = []
    for path, name in files.items():
        reason = _unusable(name) if name is not None else ""
        if reason:
            out.append(Problem(path, f"{name!r} {reason}"))
    return out


def _unusable(name: str) -> str:
    try:
        content = local_file.read(local_file.place(name), local_file.KEY_MOST)[:1000]
    except FileNotFoundError:
        return "does not exist; make one with `ssh-keygen -t ed25519 -N '' -f FILE`"
    except PermissionError:
        return "cannot be read by you; chown it to yourself, mode 0600"
    except OSError:  # a folder, a device, something of many megabytes
        return "is not a file; name the private key itself"
    if b"PRIVATE KEY-----" not in content[:100]:
        hint = "; that is a public key, leave out .pub" if content.startswith(b"ssh-") else ""
        return f"holds no private key in PEM or OpenSSH format{hint}"
    if _is_locked(content):
        return (
            "is locked by a passphrase, which nobody is asked for; load it into an agent and set "
            "machines.ssh.agent: true in place of it"
        )
    return ""


def _is_locked(content: bytes) -> bool:
    if b"ENCRYPTED" in content:  # both forms of PEM say it
        return True
    body = b"".join(line for line in content.splitlines() if not line.startswith(b"-----"))
    try:
        start = base64.b64decode(body[:64])
    except binascii.Error:
        return False
    # The name of the cipher stands behind the name of the format, with its length in four bytes.
    return start.startswith(_OPENSSH) and not start.startswith(_OPENSSH + b"\0\0\0\4none")
