"""Two ends of a wire, each a network of its own of this computer: the machine, and the computers that come to it."""

from __future__ import annotations

import contextlib
import ctypes
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

MACHINE = "10.92.0.11"
OPERATOR, MASTER, STRANGER, POD = "10.92.0.1", "10.92.0.12", "198.51.100.9", "10.244.0.5"
_NEWNET = 0x40000000
_LISTEN = """
import socket, sys
open_ = [socket.create_server(("0.0.0.0", int(port))) for port in sys.argv[1:]]
print("ready", flush=True)
sys.stdin.read()
"""
_DIAL = """
import socket, sys
for port in sys.argv[2:]:
    try:
        socket.create_connection(("10.92.0.11", int(port)), timeout=0.5, source_address=(sys.argv[1], 0)).close()
        print(port)
    except OSError:
        pass
"""
# An SSH server as far as the kernel sees it: a process with a connection, to which it sends what is written to a pipe.
_SERVE = """
import socket, sys
server = socket.create_server(("0.0.0.0", int(sys.argv[1])))
print("ready", flush=True)
server.settimeout(30)
connection, _ = server.accept()
print("came", flush=True)
with open(sys.argv[2], "rb", buffering=0) as pipe:
    while text := pipe.read(4096):
        connection.sendall(text)
"""
_LOG_IN = """
import socket, sys
connection = socket.create_connection(("10.92.0.11", int(sys.argv[2])), source_address=(sys.argv[1], 0))
while connection.recv(4096):
    pass
"""


class Wire:
    """Makes both networks; `close` takes them away."""

    def __init__(self) -> None:
        self._ends = tuple(f"kube-ha-{os.getpid()}-{end}" for end in "ab")
        self._running: list[subprocess.Popen[str]] = []
        here, there = self._ends
        for command in (
            *(f"netns add {end}" for end in self._ends),
            f"link add wire netns {here} type veth peer name wire netns {there}",
            f"-n {here} addr add {MACHINE}/24 dev wire",
            f"-n {there} addr add {OPERATOR}/24 dev wire",
            *(f"-n {there} addr add {one}/32 dev wire" for one in (MASTER, STRANGER, POD)),
            *(f"-n {end} link set {link} up" for end in self._ends for link in ("lo", "wire")),
            *(f"-n {here} route add {one}/32 dev wire" for one in (STRANGER, POD)),
        ):
            subprocess.run(["ip", *command.split()], check=True)

    def close(self) -> None:
        for process in self._running:
            process.kill()
            process.communicate()
        for end in self._ends:
            subprocess.run(["ip", "netns", "delete", end], check=False)

    @contextlib.contextmanager
    def at_the_machine(self) -> Iterator[None]:
        """This thread, and what it starts, is in the machine's network."""
        with Path("/proc/thread-self/ns/net").open() as before:
            _enter(f"/run/netns/{self._ends[0]}")
            try:
                yield
            finally:
                _enter(f"/proc/self/fd/{before.fileno()}")

    def listen(self, ports: Sequence[int]) -> None:
        self._start(0, _LISTEN, *ports)

    def reached(self, source: str, ports: Sequence[int]) -> set[int]:
        """Ports that a new connection from that address gets to."""
        command = self._command(1, _DIAL, source, *ports)
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
        return {int(port) for port in done.stdout.split()}

    def logged_in(self, source: str, port: int, pipe: Path) -> int:
        """The process at the machine that has a connection from there."""
        os.mkfifo(pipe)
        server = self._start(0, _SERVE, port, pipe)
        self._running.append(subprocess.Popen(self._command(1, _LOG_IN, source, port), text=True))
        assert server.stdout is not None
        assert server.stdout.readline() == "came\n"
        return server.pid

    def _start(self, end: int, code: str, *words: object) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            self._command(end, code, *words),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._running.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        return process

    def _command(self, end: int, code: str, *words: object) -> list[str]:
        # ip becomes the program that it starts
        enter = ["ip", "netns", "exec", self._ends[end], sys.executable, "-c", code]
        return [*enter, *map(str, words)]


def _enter(path: str) -> None:
    with Path(path).open() as file:
        if ctypes.CDLL(None, use_errno=True).setns(file.fileno(), _NEWNET):
            raise OSError(ctypes.get_errno(), f"cannot enter {path}")
