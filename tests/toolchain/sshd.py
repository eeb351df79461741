"""A real sshd of this computer on a loopback port, with keys made for the test."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

_START_S = 10
_PROGRAM = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")


@dataclass(frozen=True, slots=True)
class Sshd:
    """A running server: where it is, who may log in, what it shows."""

    folder: Path
    port: int
    process: subprocess.Popen[bytes]

    @property
    def user(self) -> str:
        """The one user a server without root can serve, and with root the one that runs the test."""
        return getpass.getuser()

    def private_key(self, name: str = "user") -> str:
        """A private key that was made beside the server: `user` may log in, `stranger` may not."""
        return (self.folder / name).read_text(encoding="utf-8")

    def host_key(self, algorithm: str = "ed25519") -> str:
        """A host key of the server as a line of authorized_keys."""
        return (self.folder / f"host_{algorithm}.pub").read_text(encoding="utf-8").strip()

    def connection(self, **changes: object) -> dict[str, object]:
        """Inputs of a connection that works; a change to None leaves the input out."""
        usual: dict[str, object] = {
            "host": "127.0.0.1",
            "port": self.port,
            "user": self.user,
            "privateKey": self.private_key(),
            "hostKey": self.host_key(),
            "dialErrorLimit": 1,
        }
        return {key: value for key, value in {**usual, **changes}.items() if value is not None}

    def sessions(self) -> int:
        """How many connections are open now."""
        listed = subprocess.run(
            ["ps", "--ppid", str(self.process.pid), "-o", "pid="],
            capture_output=True,
            text=True,
            check=False,
        )
        return len(listed.stdout.split())


def start(folder: Path, *, host_algorithms: tuple[str, ...] = ("ed25519",)) -> Sshd:
    """Start a server in `folder` and wait until it answers. Skips the test where there is no sshd."""
    if _PROGRAM is None:
        pytest.skip("no sshd on this computer: apt-get install openssh-server")
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)
    names = [f"host_{algorithm}" for algorithm in host_algorithms] + ["user", "stranger"]
    for name in names:
        algorithm = name.removeprefix("host_") if name.startswith("host_") else "ed25519"
        words = [
            "ssh-keygen",
            "-q",
            "-t",
            algorithm,
            "-N",
            "",
            "-C",
            name,
            "-f",
            str(folder / name),
        ]
        subprocess.run(words, check=True)
    shutil.copy(folder / "user.pub", folder / "authorized_keys")
    port = free_port()
    lines = [
        f"Port {port}",
        "ListenAddress 127.0.0.1",
        *(f"HostKey {folder / name}" for name in names if name.startswith("host_")),
        f"AuthorizedKeysFile {folder / 'authorized_keys'}",
        "PidFile none",
        "StrictModes no",
        "UsePAM no",
        "PasswordAuthentication no",
        "MaxStartups 100",
        "AcceptEnv WELCOME",
        "AllowTcpForwarding yes",
        "Subsystem sftp internal-sftp",
    ]
    (folder / "sshd_config").write_text("\n".join(lines) + "\n", encoding="utf-8")
    log = folder / "sshd.log"
    words = [_PROGRAM, "-D", "-f", str(folder / "sshd_config"), "-E", str(log)]
    server = Sshd(folder, port, subprocess.Popen(words))
    _wait_for(server, log)
    return server


def free_port() -> int:
    """A port nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _wait_for(server: Sshd, log: Path) -> None:
    end = time.monotonic() + _START_S
    while time.monotonic() < end:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", server.port)) == 0:
                return
        time.sleep(0.02)
    server.process.kill()
    text = log.read_text(encoding="utf-8") if log.exists() else "no log"
    pytest.fail(f"sshd does not answer on port {server.port}: {text}")
