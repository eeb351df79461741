"""One SSH server, and the words by which this computer's SSH client goes there."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

KNOWN = "known_hosts"
_DIAL_S = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class Hop:
    """One SSH server: where, as whom, with which key."""

    address: str
    port: int
    user: str
    host_key: str | None  # None: not pinned, by the user's explicit word
    key: str | None = field(repr=False)  # text of a private key; None: the agent


def client(hop: Hop, files: Path) -> list[str]:
    """The client's command up to where it is to connect.

    `files`: a folder that is made, for the key and the host key of its one use.
    """
    files.mkdir()
    known = files / KNOWN
    where = hop.address if hop.port == 22 else f"[{hop.address}]:{hop.port}"
    known.write_text(f"{where} {hop.host_key}\n" if hop.host_key else "")
    options = {
        "BatchMode": "yes",
        "ConnectTimeout": str(_DIAL_S),
        "ServerAliveInterval": "15",
        "LogLevel": "ERROR",
        "GlobalKnownHostsFile": "/dev/null",
        "UserKnownHostsFile": str(known),
        "StrictHostKeyChecking": "yes" if hop.host_key else "no",
        "UpdateHostKeys": "no",
    }
    if hop.host_key:
        # Else a server that has several shows another one than the pinned.
        options["HostKeyAlgorithms"] = _algorithms(hop.host_key.split()[0])
    if hop.key is not None:
        path = files / "key"
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as stream:
            stream.write(hop.key.rstrip("\n") + "\n")
        options |= {"IdentityFile": str(path), "IdentitiesOnly": "yes", "IdentityAgent": "none"}
    words = ["ssh", "-F", "none", "-T", "-p", str(hop.port), "-l", hop.user]
    for name, value in options.items():
        words += ["-o", f"{name}={value}"]
    return words


def _algorithms(kind: str) -> str:
    return "rsa-sha2-512,rsa-sha2-256" if kind == "ssh-rsa" else kind
