"""What a run of the engine takes: time, processor time, and memory of each of its processes."""

from __future__ import annotations

import resource
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

_LOOK_S = 0.3
_KINDS = {"language-python-exec": "program", "pulumi-resource-": "plugins", "pulumi": "engine"}
Out = TypeVar("Out")


@dataclass(slots=True)
class Taken:
    """Seconds, and the most MiB of the processes of a kind: engine, program, plugins."""

    wall_s: float = 0
    processor_s: float = 0
    mib: dict[str, int] = field(default_factory=dict)


def taken(run: Callable[[], Out]) -> tuple[Out, Taken]:
    """What `run` returns, and what the processes took that it started and waited for."""
    found, ended = Taken(), threading.Event()
    watch = threading.Thread(target=_watch, args=(found, ended))
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    watch.start()
    try:
        out = run()
    finally:
        ended.set()
        watch.join()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    found.wall_s = time.monotonic() - started
    found.processor_s = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return out, found


def _watch(found: Taken, ended: threading.Event) -> None:
    own = str(Path("/proc/self").resolve().name)
    while not ended.wait(_LOOK_S):
        parents, peaks = {}, {}
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                status = dict(
                    line.split(":", 1) for line in (folder / "status").read_text().splitlines()
                )
                words = (folder / "cmdline").read_text().replace("\0", " ")
            except OSError:
                continue  # it has just ended
            parents[folder.name] = status["PPid"].strip()
            kind = next((kind for part, kind in _KINDS.items() if part in words), None)
            if kind and "VmHWM" in status:
                peaks[folder.name] = (kind, int(status["VmHWM"].split()[0]) // 1024)
        for pid, (kind, mib) in peaks.items():
            if _is_below(pid, own, parents):
                found.mib[kind] = max(found.mib.get(kind, 0), mib)


def _is_below(pid: str, ancestor: str, parents: dict[str, str]) -> bool:
    while pid in parents:
        pid = parents[pid]
        if pid == ancestor:
            return True
    return False
