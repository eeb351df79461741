"""How full the disks of machines are. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from operations.observe.facts import Machine
from operations.observe.hints import Difference

_GIB_KIB = 1024**2
_LEAST = 10  # percent: kubelets evict pods of a machine that has less


def of_machine(found: Machine) -> Iterator[Difference]:
    """Disks that are nearly full: of the system, of etcd's data where that is another."""
    for path, disk in found.disks.items():
        if disk.free_percent < _LEAST:
            text = (
                f"the disk of {path} is {100 - disk.free_percent} % full: "
                f"{disk.free_kib / _GIB_KIB:.1f} of {disk.total_kib / _GIB_KIB:.1f} GiB are left"
            )
            do = (
                f"make room there (du -xh --max-depth 2 {path} | sort -h); on an etcd machine: a "
                "lower etcd.backup.keep, pulumi up, make backup"
            )
            yield Difference(kind="disk", subject=path, text=text, do=do)
