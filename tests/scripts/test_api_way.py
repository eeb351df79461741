"""`make api`: a port of this computer leads over SSH, by a bastion, to the API on a master; another takes over."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from components.ssh import tunnel as near_end
from components.ssh.hop import Hop
from operations import api
from operations.engine.engine import StackError
from operations.ssh.client import Target
from tests.toolchain import sshd as servers
from tests.toolchain.sshd import Sshd, free_port

ROOT = Path(__file__).parents[2]
# The operation as a process of its own: a bastion, a master that is dead, and one that lives.
CODE = """
import sys
from operations import api
from operations.holding import until_ended
from operations.ssh.client import Hop, Target
api.LOCAL_API_PORT = int(sys.argv[1])
def hop(port): return Hop(address="127.0.0.1", port=int(port), user=sys.argv[5], host_key=sys.argv[6], key=sys.argv[7])
first, second = (Target(hop=hop(port), bastion=hop(sys.argv[4])) for port in sys.argv[2:4])
masters = {"master-1": first, "master-2": second}
sys.exit(until_ended("api", lambda: api.hold(masters, int(sys.argv[8]), pause_s=0.1)))
"""


@pytest.fixture
def sshd(tmp_path: Path) -> Iterator[Sshd]:
    server = servers.start(tmp_path)
    yield server
    server.process.kill()
    server.process.wait()


@pytest.fixture
def serving() -> Iterator[int]:
    """What answers on a master as its HAProxy would, by port."""
    listening = socket.create_server(("127.0.0.1", 0))

    def answer() -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            with connection:
                connection.sendall(b"the API")

    threading.Thread(target=answer, daemon=True).start()
    yield listening.getsockname()[1]
    listening.close()


def wait(fact: Callable[[], object], what: str, log: Path) -> None:
    end = time.monotonic() + 120
    while not fact():
        assert time.monotonic() < end, f"not seen in 120 s: {what}; said: {log.read_text()}"
        time.sleep(0.1)


def test_the_port_leads_by_a_master_that_answers_and_again_when_that_ends(
    sshd: Sshd, serving: int, tmp_path: Path
) -> None:
    port, dead, log = free_port(), free_port(), tmp_path / "log"
    words = (serving, dead, sshd.port, sshd.port, sshd.user, sshd.host_key(), sshd.private_key(), port)  # fmt: skip
    with log.open("w") as said:
        running = subprocess.Popen(
            [sys.executable, "-c", CODE, *map(str, words)],
            stdout=said,
            stderr=said,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )

    def said_times(text: str, turn: int) -> bool:
        return log.read_text().count(text) == turn

    try:
        for turn in (1, 2):
            # Not that the port listens: cut off before the operation has seen that, it has led nowhere.
            wait(partial(said_times, "is the API, by master-2", turn), f"way {turn}", log)
            with socket.create_connection(("127.0.0.1", port), 30) as client:
                assert client.recv(100) == b"the API"
            listed = ["ps", "--ppid", str(sshd.process.pid), "-o", "pid="]
            done = subprocess.run(listed, capture_output=True, text=True, check=True)
            for number in done.stdout.split():  # its own children alone
                with suppress(ProcessLookupError):  # one may have ended with another
                    os.kill(int(number), signal.SIGKILL)
            wait(partial(said_times, "the way by master-2 ended", turn), "its end", log)
        assert "the way by master-1 ended" in log.read_text()
    finally:
        running.terminate()
        assert running.wait(60) == 0
    assert not near_end.listens(port)


def test_masters_that_nobody_reaches_end_it_and_are_named() -> None:
    nobody = Target(hop=Hop(address="127.0.0.1", port=free_port(), user="ops", host_key=None, key=None))  # fmt: skip
    with pytest.raises(StackError) as raised:
        api.hold({"master-1": nobody, "master-2": nobody}, free_port(), pause_s=0)
    assert "none of master-1, master-2 could be reached\n  do: " in str(raised.value)


def test_a_port_that_is_taken_is_not_led_anywhere(serving: int) -> None:
    with pytest.raises(StackError, match="set apiPort to a free port"):
        api.hold({}, serving)
