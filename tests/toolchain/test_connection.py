"""Who is let in, who is refused, how often it is tried: connections of the stand-in on a real sshd."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.toolchain import sshd as servers
from tests.toolchain.conftest import StartPlugin
from tests.toolchain.plugin_client import CallError, Plugin
from tests.toolchain.sshd import Sshd

KIND = "command:remote:Command"


@pytest.fixture
def many_keys(tmp_path: Path) -> Iterator[Sshd]:
    """A server with host keys of three kinds, as a freshly installed Debian has."""
    folder = tmp_path / "many"
    folder.mkdir()
    server = servers.start(folder, host_algorithms=("rsa", "ecdsa", "ed25519"))
    yield server
    server.process.terminate()
    server.process.wait(10)


def test_another_host_key_is_refused_before_anything_runs(
    sshd: Sshd, command: Plugin, tmp_path: Path
) -> None:
    wrong = (sshd.folder / "stranger.pub").read_text().strip()
    with pytest.raises(CallError) as caught:
        command.create(
            KIND, "node", connection=sshd.connection(hostKey=wrong), create=f"touch {tmp_path}/ran"
        )
    assert str(caught.value).startswith(
        "after 1 failed attempts: ssh: handshake failed: ssh: host key mismatch"
    )
    assert not (tmp_path / "ran").exists()


def test_without_a_host_key_any_is_accepted(sshd: Sshd, command: Plugin) -> None:
    made = command.create(KIND, "node", connection=sshd.connection(hostKey=None), create="echo in")
    assert made.state["stdout"] == "in"


def test_a_host_key_that_is_none_is_refused_at_once(sshd: Sshd, command: Plugin) -> None:
    with pytest.raises(CallError, match=r"^ssh: "):
        command.create(KIND, "node", connection=sshd.connection(hostKey="x"), create="id")


@pytest.mark.parametrize("algorithm", ["ecdsa", "ed25519"])
def test_of_several_host_keys_the_one_that_is_pinned_is_asked_for(
    many_keys: Sshd, command: Plugin, algorithm: str
) -> None:
    where = many_keys.connection(hostKey=many_keys.host_key(algorithm), dialErrorLimit=0)
    made = command.create(KIND, "node", connection=where, create="echo in")
    assert made.state["stdout"] == "in"


@pytest.mark.parametrize("algorithm", ["rsa", "missing"])
def test_a_pinned_key_of_a_kind_that_the_machine_does_not_show_is_told(
    sshd: Sshd, many_keys: Sshd, command: Plugin, algorithm: str
) -> None:
    """An RSA key is pinned with SHA-1, which no server of today signs with."""
    where = many_keys.connection(hostKey=many_keys.host_key("rsa"), dialErrorLimit=0)
    if algorithm == "missing":
        where = sshd.connection(hostKey=many_keys.host_key("ecdsa"), dialErrorLimit=0)
    with pytest.raises(CallError, match=r"no common algorithm for host key"):
        command.create(KIND, "node", connection=where, create="echo in")


def test_a_key_that_may_not_is_tried_up_to_the_limit(sshd: Sshd, command: Plugin) -> None:
    with pytest.raises(CallError) as caught:
        command.create(
            KIND,
            "node",
            connection=sshd.connection(privateKey=sshd.private_key("stranger"), dialErrorLimit=2),
            create="true",
        )
    assert str(caught.value) == (
        "after 2 failed attempts: ssh: handshake failed: ssh: unable to authenticate, "
        "attempted methods [none publickey], no supported methods remain"
    )
    assert command.log.lines == ["Dial 1/2 failed: retrying", "Dial 2/2 failed: retrying"]


def test_a_closed_port_is_tried_up_to_the_limit(command: Plugin) -> None:
    port = servers.free_port()
    with pytest.raises(CallError) as caught:
        command.create(
            KIND,
            "node",
            connection={"host": "127.0.0.1", "port": port, "dialErrorLimit": 1},
            create="true",
        )
    assert str(caught.value) == (
        f"after 1 failed attempts: dial tcp 127.0.0.1:{port}: connect: connection refused"
    )


def test_a_machine_that_comes_up_late_is_reached(tmp_path: Path, command: Plugin) -> None:
    folder = tmp_path / "late"
    folder.mkdir()
    server = servers.start(folder)
    words = list(map(str, server.process.args if isinstance(server.process.args, list) else []))
    server.process.terminate()
    server.process.wait(10)
    started: list[subprocess.Popen[bytes]] = []
    timer = threading.Timer(1.5, lambda: started.append(subprocess.Popen(words)))
    timer.start()
    try:
        made = command.create(
            KIND, "node", connection=server.connection(dialErrorLimit=-1), create="echo up"
        )
        assert made.state["stdout"] == "up"
    finally:
        timer.join()
        for process in started:
            process.terminate()
            process.wait(10)


def test_through_a_bastion(sshd: Sshd, many_keys: Sshd, command: Plugin) -> None:
    inner = many_keys.connection(hostKey=many_keys.host_key("ecdsa"), proxy=sshd.connection())
    made = command.create(
        KIND, "node", connection=inner, create="echo $SSH_CONNECTION | cut -d' ' -f4"
    )
    assert made.state["stdout"] == str(many_keys.port)


def test_a_bastion_that_refuses_is_named(sshd: Sshd, command: Plugin) -> None:
    proxy = sshd.connection(privateKey=sshd.private_key("stranger"), dialErrorLimit=0)
    with pytest.raises(CallError, match=r"^proxy: after 0 failed attempts: ssh: handshake failed"):
        command.create(KIND, "node", connection=sshd.connection(proxy=proxy), create="true")


@pytest.mark.skipif(shutil.which("ssh-agent") is None, reason="no ssh-agent on this computer")
def test_an_agent_opens_where_no_key_is_given(sshd: Sshd, command: Plugin, tmp_path: Path) -> None:
    path = tmp_path / "agent"
    agent = subprocess.Popen(["ssh-agent", "-D", "-a", str(path)], stdout=subprocess.DEVNULL)
    try:
        while not path.exists():
            time.sleep(0.02)
        environment = {**os.environ, "SSH_AUTH_SOCK": str(path)}
        subprocess.run(["ssh-add", "-q", str(sshd.folder / "user")], env=environment, check=True)
        where = sshd.connection(privateKey=None, agentSocketPath=str(path))
        made = command.create(KIND, "node", connection=where, create="echo in")
        assert made.state["stdout"] == "in"
    finally:
        agent.terminate()
        agent.wait(10)


def test_a_cancel_ends_the_dialling(plugin: StartPlugin) -> None:
    command = plugin("command")
    where = {"host": "127.0.0.1", "port": servers.free_port(), "dialErrorLimit": -1}
    timer = threading.Timer(1, command.cancel)
    timer.start()
    with pytest.raises(CallError, match=r"^context canceled$"):
        command.create(KIND, "node", connection=where, create="true")
    timer.join()


def test_an_interrupt_ends_the_plugin_and_its_connections(
    sshd: Sshd, plugin: StartPlugin, tmp_path: Path
) -> None:
    command = plugin("command")

    def run() -> None:
        with pytest.raises(CallError):
            command.create(
                KIND,
                "node",
                connection=sshd.connection(),
                create=f"echo > {tmp_path}/started; sleep 20",
            )

    thread = threading.Thread(target=run)
    thread.start()
    _wait(lambda: (tmp_path / "started").exists())
    command.process.send_signal(signal.SIGINT)
    assert command.process.wait(5) == 0
    thread.join()
    _wait(lambda: sshd.sessions() == 0)


def _wait(fact: Callable[[], bool]) -> None:
    end = time.monotonic() + 10
    while not fact():
        assert time.monotonic() < end, "not seen in 10 s"
        time.sleep(0.05)
