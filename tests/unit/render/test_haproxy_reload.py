"""HAProxy as systemd runs it, reloaded while clients connect: none of them may notice."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.render.examples import lab, local_api, program
from tests.unit.render.haproxy_process import Clients, free_port, until_open
from tests.unit.render.test_haproxy_running import (
    ApiServer,
    Door,
    _certificates,
    _here,
)

pytestmark = pytest.mark.slow

RELOADS = 10
CLIENTS = 4


@pytest.fixture
def haproxy(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[bytes], Door, Path]]:
    """Master and worker, as Debian's unit starts them (-W), before three API servers."""
    ca, leaf = _certificates(tmp_path, "kubernetes")
    masters = {f"master-{n}": ApiServer(f"master-{n}", leaf) for n in (1, 2, 3)}
    port, config, log = free_port(), tmp_path / "haproxy.cfg", tmp_path / "haproxy.log"
    config.write_text(_here(local_api(lab()), ca, port, masters))
    with log.open("wb") as output:
        process = subprocess.Popen(
            [program("haproxy", tmp_path), "-W", "-f", str(config)], stderr=output
        )
    until_open(port)
    yield process, Door(port, log), config
    process.terminate()
    process.wait(30)
    for master in masters.values():
        master.die()


def test_ten_reloads_lose_no_connection(
    haproxy: tuple[subprocess.Popen[bytes], Door, Path],
) -> None:
    process, door, _ = haproxy
    with Clients([door.ask] * CLIENTS) as clients:
        for _ in range(RELOADS):
            process.send_signal(signal.SIGUSR2)
            # Each reload happens while connections are made before it and after it.
            clients.wait_for(5 * CLIENTS)
    assert clients.failures == []
    assert clients.answers >= RELOADS * 5 * CLIENTS


def test_a_config_that_it_does_not_take_leaves_the_running_one(
    haproxy: tuple[subprocess.Popen[bytes], Door, Path],
) -> None:
    """The phases ask `haproxy -c` before; should that ever be left out, clients still go on."""
    process, door, config = haproxy
    config.write_text(config.read_text().replace("balance random", "balance by-magic"))
    with Clients([door.ask] * CLIENTS) as clients:
        process.send_signal(signal.SIGUSR2)
        time.sleep(3)
    assert clients.failures == []
    assert clients.answers > 0
    assert process.poll() is None
