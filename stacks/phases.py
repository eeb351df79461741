"""The phases that run on nodes: their scripts' sums, and hashes of what they are to make so."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "components" / "scripts"

# In the order in which a node meets them.
NODE_PHASES = ("preflight", "node", "pki", "etcd-member", "master", "join")
CLUSTER_PHASES = ("addon", "mint", "nodes", "gate", "etcd-absent")


@cache
def script_sum(phase: str) -> str:
    """Short hash of the scripts one phase is made of; run.sh compares it on the node."""
    text = (FOLDER / "lib.sh").read_bytes() + (FOLDER / f"{phase}.sh").read_bytes()
    return hashlib.sha256(text).hexdigest()[:16]


def digest(*texts: str) -> str:
    """Short hash of what a node should be."""
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]
