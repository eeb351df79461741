"""Which host key a machine shows, asked with this computer's SSH client and without a login."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

from operations.ssh import client
from operations.ssh.client import Target

# By these kinds the engine's plugin can pin a key: it asks for the kind of the pinned one alone.
# The first that the machine has is shown.
KINDS = (
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "ssh-ed25519",
)
_LIMIT_S = 60  # bastion and machine


def shown(target: Target, *, first: str = "") -> tuple[str | None, str]:
    """`type base64` that the machine shows, None without one; and the client's last words.

    `first`: the kind that is asked for before others. Its hop needs no key: nobody logs in there.
    """
    kinds = [first, *(kind for kind in KINDS if kind != first)] if first in KINDS else [*KINDS]
    open_ = replace(target, hop=replace(target.hop, host_key=None, key=None))
    with tempfile.TemporaryDirectory(prefix="kube-ha-") as folder:
        words = client.client(open_, Path(folder))
        options = {
            "HostKeyAlgorithms": ",".join(kinds),
            # The key is known before the login, and none is wanted.
            "PreferredAuthentications": "none",
            "HashKnownHosts": "no",
        }
        own = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
        _, said = client.ended([words[0], *own, *words[1:], "true"], "", limit_s=_LIMIT_S)
        known = client.known_hosts(Path(folder)).read_text().split()
    lines = said.strip().splitlines()
    return " ".join(known[1:3]) or None, lines[-1] if lines else "no answer"
