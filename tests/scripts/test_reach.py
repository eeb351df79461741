"""Whose SSH servers answer, asked at real sockets."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from unittest import mock

import pytest

from components.ssh import hop, reach
from components.ssh.hop import Hop
from tests.toolchain import sshd as servers


@contextmanager
def server(words: bytes) -> Iterator[tuple[str, int]]:
    """Accepts connections and says this; nothing: it hangs."""
    listening = socket.create_server(("127.0.0.1", 0))
    held: list[socket.socket] = []

    def serve() -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            held.append(connection)
            connection.sendall(words)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield listening.getsockname()[:2]
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        thread.join()
        for connection in held:
            connection.close()


def free_port() -> int:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port: int = taken.getsockname()[1]
        return port


@pytest.fixture
def doors() -> Iterator[dict[str, tuple[str, int]]]:
    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(reach, "_LIMIT_S", 0.5))
        yield {
            "well": stack.enter_context(server(b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n")),
            "hangs": stack.enter_context(server(b"")),
            "something-else": stack.enter_context(server(b"220 mail.example.com\r\n")),
            "refuses": ("127.0.0.1", free_port()),
            "no-such-name": ("machine.invalid", 22),
        }


def test_only_an_ssh_server_that_speaks_counts_as_an_answer(
    doors: dict[str, tuple[str, int]],
) -> None:
    assert reach.silent(doors) == {"hangs", "something-else", "refuses", "no-such-name"}


def test_where_nobody_answers_it_is_this_computer(doors: dict[str, tuple[str, int]]) -> None:
    del doors["well"]
    assert reach.silent(doors) == frozenset()
    assert reach.silent({}) == frozenset()


def test_hundreds_are_asked_at_once(doors: dict[str, tuple[str, int]]) -> None:
    many = {f"worker-{number}": doors["well"] for number in range(300)}
    assert reach.silent({**many, "worker-300": doors["refuses"]}) == {"worker-300"}


@pytest.fixture
def jump(tmp_path: Path) -> Iterator[Hop]:
    server = servers.start(tmp_path)
    yield Hop(
        address="127.0.0.1",
        port=server.port,
        user=server.user,
        host_key=server.host_key(),
        key=server.private_key(),
    )
    server.process.kill()
    server.process.wait()


def test_behind_a_bastion_the_same_is_asked_through_it(
    jump: Hop, doors: dict[str, tuple[str, int]]
) -> None:
    with mock.patch.object(reach, "_BEHIND_S", 5.0):
        found = reach.silent_behind(jump, doors)
        assert found == {"hangs", "something-else", "refuses", "no-such-name"}
        assert jump.key is not None
        assert jump.key not in repr(jump)


def test_where_nobody_answers_it_is_the_bastion(
    jump: Hop, doors: dict[str, tuple[str, int]]
) -> None:
    stranger = replace(
        jump,
        host_key="ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGZha2VmYWtlZmFrZWZha2VmYWtlZmFrZWZha2VmYWtl",
    )
    assert reach.silent_behind(stranger, {"well": doors["well"]}) == frozenset()
    with mock.patch.object(hop, "client", return_value=["/no/such/program"]):
        assert reach.silent_behind(jump, doors) == frozenset()
