"""HAProxy as systemd runs it, reloaded while clients connect: none of them may notice."""

from __future__ import annotations

import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.files_examples import lab, local_api, program
from tests.unit.test_files_haproxy_running import (
    ApiServer,
    Door,
    _certificates,
    _free_port,
    _here,
    _until_open,
)

pytestmark = pytest.mark.slow

RELOADS = 10
CLIENTS = 4


class Clients:
    """Threads that ask on new connections, one after another, until told to stop."""

    def __init__(self, door: Door) -> None:
        self._door = door
        self._stop = threading.Event()
        self.answers = 0
        self.failures: list[str] = []
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._ask, daemon=True) for _ in range(CLIENTS)]

    def __enter__(self) -> Clients:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(30)

    def _ask(self) -> None:
        while not self._stop.is_set():
            try:
                self._door.ask()
            except OSError as error:
                with self._lock:
                    self.failures.append(repr(error))
            else:
                with self._lock:
                    self.answers += 1


@pytest.fixture
def haproxy(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[bytes], Door, Path]]:
    """Master and worker, as Debian's unit starts them (-W), before three API servers."""
    ca, leaf = _certificates(tmp_path, "kubernetes")
    masters = {f"master-{n}": ApiServer(f"master-{n}", leaf) for n in (1, 2, 3)}
    port, config, log = _free_port(), tmp_path / "haproxy.cfg", tmp_path / "haproxy.log"
    config.write_text(_here(local_api(lab()), ca, port, masters))
    with log.open("wb") as output:
        process = subprocess.Popen(
            [program("haproxy", tmp_path), "-W", "-f", str(config)], stderr=output
        )
    _until_open(port)
    yield process, Door(port, log), config
    process.terminate()
    process.wait(30)
    for master in masters.values():
        master.die()


def test_ten_reloads_lose_no_connection(
    haproxy: tuple[subprocess.Popen[bytes], Door, Path],
) -> None:
    process, door, _ = haproxy
    with Clients(door) as clients:
        for _ in range(RELOADS):
            seen = clients.answers
            process.send_signal(signal.SIGUSR2)
            end = time.monotonic() + 60
            # Each reload happens while connections are made before it and after it.
            while clients.answers < seen + 5 * CLIENTS:
                assert time.monotonic() < end, "no answers after a reload"
                time.sleep(0.05)
    assert clients.failures == []
    assert clients.answers >= RELOADS * 5 * CLIENTS


def test_a_config_that_it_does_not_take_leaves_the_running_one(
    haproxy: tuple[subprocess.Popen[bytes], Door, Path],
) -> None:
    """The phases ask `haproxy -c` before; should that ever be left out, clients still go on."""
    process, door, config = haproxy
    config.write_text(config.read_text().replace("balance random", "balance by-magic"))
    with Clients(door) as clients:
        process.send_signal(signal.SIGUSR2)
        time.sleep(3)
    assert clients.failures == []
    assert clients.answers > 0
    assert process.poll() is None
