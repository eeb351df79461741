"""The phases that run on nodes: which scripts they are made of, and the sums of these."""

from __future__ import annotations

import hashlib
import re
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "components" / "scripts"

# In the order in which a node meets them.
NODE_PHASES = (
    "preflight",
    "node",
    "pki",
    "etcd-member",
    "master",
    "join",
    "vip-peers",
    "vip-away",
    "vip",
    "ingress",
)
CLUSTER_PHASES = (
    *("addon", "manifests", "mint", "snapshot", "retire", "rotation"),
    *("wave", "balancer", "nodes", "gate", "etcd-absent"),
)
_DAY_S = 24 * 3600
STDIN_LIMIT = 8192  # bytes of one command; a stdin is in the state twice
# What a phase shares with some others but not with all.
_SOURCED = re.compile(rb'^source "\$here/([a-z-]+\.sh)"$', re.MULTILINE)


def until(now_s: float) -> str:
    """When the text of a command that runs once is over; run.sh does nothing by it from then on.

    Seconds since 1970, the end of the next day: preview and update agree nearly always.
    """
    return str((int(now_s) // _DAY_S + 2) * _DAY_S)


@cache
def script_sum(phase: str) -> str:
    """Short hash of the scripts one phase is made of; run.sh compares it on the node."""
    text = b"".join((FOLDER / name).read_bytes() for name in parts(phase))
    return hashlib.sha256(text).hexdigest()[:16]


@cache
def parts(phase: str) -> tuple[str, ...]:
    """Names of the files that one phase is made of, run.sh apart, in the order of their sum."""
    sourced = _SOURCED.findall((FOLDER / f"{phase}.sh").read_bytes())
    return ("lib.sh", f"{phase}.sh", *(name.decode() for name in sourced))


def whole(phase: str) -> str:
    """The text of a phase with all that it sources in its place: it needs no file beside it."""
    text = (FOLDER / f"{phase}.sh").read_bytes()
    inner = _SOURCED.sub(lambda found: (FOLDER / found[1].decode()).read_bytes(), text)
    return (FOLDER / "lib.sh").read_text() + inner.decode()
