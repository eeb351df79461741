"""Which disks machine types of Google take (Compute Engine, "Disk types", machine series)."""

from __future__ import annotations

import re

from stacks.config.clouds import GcpDisk

# Series from the fourth generation on take no Persistent Disk.
_HYPERDISK_ALONE = re.compile(r"([cn]4[ad]?|h4d|m4n?|x4|a4x?|g4|z4m|c5[ad]?|n5[ad]?)-.*")
# Series before the third take no Hyperdisk Balanced.
_NO_HYPERDISK = re.compile(r"(e2|f1|g1|g2|n1|n2d?|t2[ad]|c2d?|a2)-.*")
_HYPERDISK: GcpDisk = "hyperdisk-balanced"


def boot(type_: str, said: GcpDisk | None) -> GcpDisk:
    """Of a machine type: what is said, or the usual."""
    return said or (_HYPERDISK if _HYPERDISK_ALONE.fullmatch(type_) else "pd-balanced")


def etcd(type_: str, said: GcpDisk | None) -> GcpDisk:
    """The same of etcd's disk."""
    return said or (_HYPERDISK if _HYPERDISK_ALONE.fullmatch(type_) else "pd-ssd")


def trouble(type_: str, disk: GcpDisk) -> str:
    """Why a machine type takes no such disk; empty: it does, or is not known here."""
    if disk == _HYPERDISK:
        refused, others = _NO_HYPERDISK.fullmatch(type_), "pd-balanced or pd-ssd"
    else:
        refused, others = _HYPERDISK_ALONE.fullmatch(type_), _HYPERDISK
    return f"{type_} takes no {disk}; write {others}, or leave it out" if refused else ""
