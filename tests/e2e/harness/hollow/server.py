"""Hollow workers, all in this one process (kubelet.py, machines.py).

    python -m tests.e2e.harness.hollow.server FOLDER MACHINES USER API...

USER is a file with the public key that is let in, API are API servers, "host:port" each. While
FOLDER/off lists numbers of machines, these are switched off: SSH is refused there, and their
kubelets are silent. FOLDER/ready is there when all answer; FOLDER/commands has a line for each
command that a machine was sent; FOLDER/seen has how often the kubelets renewed a lease so far, and
how often no API server took that. It ends with SIGTERM.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import aiohttp

from tests.e2e.harness.hollow.api import Api
from tests.e2e.harness.hollow.kubelet import Kubelet
from tests.e2e.harness.hollow.machines import Machines, address

COMMANDS, OFF, READY, SEEN = "commands", "off", "ready", "seen"
_LOOK_S = 0.5


def write_whole(path: Path, text: str) -> None:
    """Whoever reads it meanwhile has what was there before."""
    new = path.with_name(f".{path.name}.new")
    new.write_text(text)
    new.replace(path)


def main(arguments: Sequence[str]) -> None:
    """Serve until it is ended."""
    folder, count, user, *servers = arguments
    asyncio.run(_serve(Path(folder), int(count), Path(user), servers))


async def _serve(folder: Path, count: int, user: Path, servers: Sequence[str]) -> None:
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector) as http:
        api = Api(servers, http)
        kubelets = [Kubelet(number, address(number), api) for number in range(count)]
        with (folder / COMMANDS).open("a", buffering=1) as log:

            async def play(number: int, phase: str, values: Mapping[str, str]) -> str:
                log.write(f"{number} {phase}\n")
                return await kubelets[number].phase(phase, values)

            machines = Machines.make(folder, count, user=user, play=play)
            silent = frozenset[int]()
            await machines.answer(range(count))
            (folder / READY).touch()
            while True:
                await asyncio.sleep(_LOOK_S)
                beats = sum(kubelet.beats for kubelet in kubelets)
                missed = sum(kubelet.missed for kubelet in kubelets)
                write_whole(folder / SEEN, f"{beats} {missed}")
                now = _off(folder)
                if now == silent:
                    continue
                await machines.answer([number for number in range(count) if number not in now])
                for number, kubelet in enumerate(kubelets):
                    if number in now:
                        kubelet.die()
                    elif number in silent:
                        kubelet.live()
                silent = now


def _off(folder: Path) -> frozenset[int]:
    try:
        return frozenset(map(int, (folder / OFF).read_text().split()))
    except FileNotFoundError:
        return frozenset()


if __name__ == "__main__":
    main(sys.argv[1:])
