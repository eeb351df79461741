"""Commands through a tunnel: the stand-in of the provider, and this computer's SSH client, on real servers.

The far ends are two sshd of this computer; what `gcloud` would do is done by a program that leads bytes on.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from components.ssh import tunnel
from components.ssh.hop import Hop
from operations.ssh import client
from operations.ssh.client import Target
from tests.toolchain import sshd as servers
from tests.toolchain.plugin_client import CallError, Plugin
from tests.toolchain.sshd import Sshd
from tests.unit.configs import behind_tunnel, gcp

ROOT = Path(__file__).parents[2]
KIND = "command:remote:Command"
# `instances list`: the bastion is there as soon as the file `made` is. `start-iap-tunnel`: what comes to the port that
# it is told is led on to the port in the file `bastion`.
GCLOUD = """#!{python}
import asyncio, json, os, sys
here = {folder!r}
if "list" in sys.argv:
    made = os.path.exists(here + "/made")
    print(json.dumps([{{"zone": "zones/europe-west3-a"}}] if made else []))
    sys.exit()
(port,) = [int(word.rpartition(":")[2]) for word in sys.argv if word.startswith("--local-host-port=")]
async def lead(reader, writer):
    there = await asyncio.open_connection("127.0.0.1", int(open(here + "/bastion").read()))
    async def pump(a, b):
        while data := await a.read(65536):
            b.write(data)
            await b.drain()
        b.close()
    await asyncio.gather(pump(reader, there[1]), pump(there[0], writer), return_exceptions=True)
async def main():
    async with await asyncio.start_server(lead, "127.0.0.1", port) as server:
        await server.serve_forever()
asyncio.run(main())
"""


class Held:
    """A stack file behind a tunnel, and `make tunnel` for it, once it is started."""

    def __init__(self, folder: Path, bastion: Sshd) -> None:
        self.folder, self.port = folder, servers.free_port()
        self.process: subprocess.Popen[bytes] | None = None
        (folder / "bin").mkdir()
        program = folder / "bin/gcloud"
        program.write_text(GCLOUD.format(python=sys.executable, folder=str(folder)))
        program.chmod(0o755)
        raw = gcp({**behind_tunnel("gcp"), "machines.gcp.tunnelPort": self.port})
        keys = {f"kube-ha:{key}": value for key, value in raw.items()}
        (folder / "Pulumi.prod.yaml").write_text(json.dumps({"config": keys}))
        self.leads_to(bastion)

    def leads_to(self, bastion: Sshd) -> None:
        (self.folder / "bastion").write_text(str(bastion.port))

    def start(self) -> None:
        code = (
            "import sys; from operations import tunnel; "
            "tunnel.hold.__kwdefaults__['pause_s'] = 0.1; sys.exit(tunnel.main(['prod']))"
        )
        path = f"{self.folder}/bin:{os.environ['PATH']}"
        environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)}
        self.process = subprocess.Popen([sys.executable, "-c", code], cwd=self.folder, env=environment)  # fmt: skip

    def make_bastion(self) -> None:
        (self.folder / "made").touch()

    def end(self) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGINT)
            assert self.process.wait(30) == 0


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Sshd]:
    """The machine behind the bastion, with other keys."""
    folder = tmp_path / "node"
    folder.mkdir()
    server = servers.start(folder)
    yield server
    server.process.terminate()
    server.process.wait(10)


@pytest.fixture
def held(tmp_path: Path, sshd: Sshd) -> Iterator[Held]:
    found = Held(tmp_path, sshd)
    yield found
    found.end()


def through(held: Held, bastion: Sshd, node: Sshd) -> dict[str, object]:
    """The connection as a stack behind a tunnel gives it."""
    proxy = bastion.connection(host="127.0.0.1", port=held.port, dialErrorLimit=120)
    return node.connection(proxy=proxy)


def wait(fact: Callable[[], object], what: str) -> None:
    end = time.monotonic() + 30
    while not fact():
        assert time.monotonic() < end, f"not seen in 30 s: {what}"
        time.sleep(0.05)


def test_the_first_command_waits_until_there_is_a_bastion_and_somebody_holds_the_tunnel(
    held: Held, sshd: Sshd, node: Sshd, command: Plugin
) -> None:
    seen: list[object] = []

    def run() -> None:
        where = "echo $SSH_CONNECTION | cut -d' ' -f4"
        made = command.create(KIND, "node", connection=through(held, sshd, node), create=where)
        seen.append(made.state["stdout"])

    thread = threading.Thread(target=run)
    thread.start()
    wait(lambda: command.log.lines, "a first attempt")  # nobody listens
    held.start()
    time.sleep(1)  # `make tunnel` waits now, and so does the command
    assert not seen
    held.make_bastion()
    thread.join(60)
    assert seen == [str(node.port)]


def test_many_commands_at_once_go_through_one_tunnel_which_may_end_between_them(
    held: Held, sshd: Sshd, node: Sshd, command: Plugin
) -> None:
    held.make_bastion()
    held.start()
    wait(lambda: tunnel.listens(held.port), "the tunnel")
    connection = through(held, sshd, node)

    def all_at_once() -> list[str]:
        seen: list[object] = []

        def run(number: int) -> None:
            made = command.create(KIND, f"node-{number}", connection=connection, create=f"echo {number}")  # fmt: skip
            seen.append(made.state["stdout"])

        threads = [threading.Thread(target=run, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        return sorted(map(str, seen))

    assert all_at_once() == [str(number) for number in range(8)]
    # As the cloud ends a session that was idle.
    found = subprocess.run(["pgrep", "-f", f"{held.folder}/bin/gcloud.*start-iap"], capture_output=True, text=True, check=True)  # fmt: skip
    (leading,) = found.stdout.split()
    os.kill(int(leading), signal.SIGKILL)
    assert all_at_once() == [str(number) for number in range(8)]


def test_a_tunnel_that_leads_to_another_machine_is_refused(
    held: Held, sshd: Sshd, node: Sshd, command: Plugin
) -> None:
    held.leads_to(node)
    held.make_bastion()
    held.start()
    wait(lambda: tunnel.listens(held.port), "the tunnel")
    proxy = sshd.connection(host="127.0.0.1", port=held.port, dialErrorLimit=1)
    with pytest.raises(CallError, match=r"^proxy: after 1 failed attempts: .*host key mismatch"):
        command.create(KIND, "node", connection=node.connection(proxy=proxy), create="true")


def test_without_a_tunnel_the_error_tells_where_it_would_begin(
    held: Held, sshd: Sshd, node: Sshd, command: Plugin
) -> None:
    proxy = sshd.connection(host="127.0.0.1", port=held.port, dialErrorLimit=1)
    text = f"proxy: after 1 failed attempts: dial tcp 127.0.0.1:{held.port}: connect: connection refused"
    with pytest.raises(CallError) as raised:
        command.create(KIND, "node", connection=node.connection(proxy=proxy), create="true")
    assert str(raised.value) == text


def test_operations_go_the_same_way(held: Held, sshd: Sshd, node: Sshd, tmp_path: Path) -> None:
    held.make_bastion()
    held.start()
    wait(lambda: tunnel.listens(held.port), "the tunnel")

    def hop(server: Sshd, port: int, host_key: str) -> Hop:
        key = server.private_key()
        return Hop(address="127.0.0.1", port=port, user=server.user, host_key=host_key, key=key)

    near, far = (hop(sshd, held.port, sshd.host_key()), hop(node, node.port, node.host_key()))
    wrong = hop(sshd, held.port, node.host_key())
    for bastion, status, said in ((near, 0, "in\n"), (wrong, 255, "")):
        folder = tmp_path / f"files-{status}"
        folder.mkdir()
        words = [*client.client(Target(hop=far, bastion=bastion), folder), "echo in"]
        done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=60)  # fmt: skip
        assert (done.returncode, done.stdout) == (status, said), done.stderr
