"""Hollow workers beside real masters: a thousand nodes on a small computer."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.e2e.harness.hollow import server
from tests.e2e.harness.hollow.machines import HOST_KEYS, address, routed
from tests.e2e.harness.lab import ROOT
from tests.e2e.harness.waiting import wait_for

_READY_S = 120


@dataclass(frozen=True, slots=True)
class HollowWorkers:
    """Machines that answer SSH, and become nodes when a stack says so; `running` makes them."""

    folder: Path
    count: int

    def name(self, number: int) -> str:
        """As the node is called."""
        return f"worker-{number + 1}"

    def write_hosts(self, file: Path, count: int) -> None:
        """The first `count` of them as a pool's hostsFile."""
        keys = (self.folder / HOST_KEYS).read_text().splitlines()
        rows = [f"{self.name(n)},{address(n)},{keys[n]}" for n in range(count)]
        file.write_text("\n".join(["name,address,hostKey", *rows]) + "\n")

    def switch_off(self, numbers: Collection[int]) -> None:
        """Exactly these are off from now on, within a second."""
        server.write_whole(self.folder / server.OFF, " ".join(map(str, numbers)))

    def leases(self) -> tuple[int, int]:
        """How often they renewed one so far, and how often no API server took that."""
        beats, missed = (self.folder / server.SEEN).read_text().split()
        return int(beats), int(missed)

    def commands(self) -> Counter[str]:
        """How often each phase was run on them so far, by phase; files that are brought are not counted."""
        lines = (self.folder / server.COMMANDS).read_text().splitlines()
        return Counter(line.partition(" ")[2] for line in lines)


@contextmanager
def running(
    folder: Path, count: int, user: Path, servers: Sequence[str]
) -> Iterator[HollowWorkers]:
    """`count` of them, which let the owner of the key in file `user` in. `servers`: "host:port" of API servers."""
    folder.mkdir(parents=True)
    words = ["tests.e2e.harness.hollow.server", folder, count, user, *servers]
    with routed(), (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", *map(str, words)],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
        try:
            wait_for("hollow workers", lambda: _missing(folder, process), limit_s=_READY_S)
            yield HollowWorkers(folder, count)
        finally:
            process.terminate()
            process.wait()


def _missing(folder: Path, process: subprocess.Popen[bytes]) -> str:
    if process.poll() is not None:
        return f"exit {process.returncode}: {(folder / 'log').read_text()[-500:]}"
    return "" if (folder / server.READY).exists() else "not yet"
