"""Who says to be at this computer: a hint for who reads the audit log, not a proof."""

from __future__ import annotations

import getpass
import re
import socket

ANNOTATION = "kube-ha.io/asked-by"  # an annotation


def name() -> str:
    """user@computer, in characters that any log shows as they are."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container's user without a name
        user = "unknown"
    return re.sub(r"[^A-Za-z0-9._@-]", "-", f"{user}@{socket.gethostname()}")[:128]
