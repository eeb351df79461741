"""etcd at 127.0.0.1 of a node that has no member: real members, the real HAProxy between, TLS from end to end."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from stacks.render.haproxy import local_api
from tests.scripts.real_etcd import Members
from tests.unit.render.examples import lab, program
from tests.unit.render.haproxy_process import for_anybody, free_port, until_open

pytestmark = pytest.mark.slow


@dataclass(frozen=True, slots=True)
class Door:
    members: Members
    port: int

    def etcdctl(self, *words: str, keys: bool = True) -> subprocess.CompletedProcess[str]:
        pki = self.members[1].pki
        own = [f"--cert={pki}/client.crt", f"--key={pki}/client.key"] if keys else []
        return subprocess.run(
            [
                self.members.programs / "etcdctl",
                f"--endpoints=https://127.0.0.1:{self.port}",
                f"--cacert={pki}/ca.crt",
                *own,
                "--dial-timeout=3s",
                "--command-timeout=8s",
                *words,
            ],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )


@pytest.fixture
def door(tmp_path: Path) -> Iterator[Door]:
    members = Members(tmp_path / "etcd")
    try:
        members.start()
        port = free_port()
        config = tmp_path / "haproxy.cfg"
        config.write_text(_config(members, port))
        haproxy = subprocess.Popen(
            [program("haproxy", tmp_path), "-db", "-f", str(config)], stderr=subprocess.DEVNULL
        )
        try:
            until_open(port)
            yield Door(members, port)
        finally:
            haproxy.kill()
            haproxy.wait()
    finally:
        members.stop()


def _config(members: Members, port: int) -> str:
    """The part about etcd, at the test's port and members; what only root may do is left out."""
    plan = lab(frontDoors={"etcd": {"pools": ["worker"]}})
    text = local_api(plan, plan.workers[0])
    api = text[text.index("listen kubernetes-api") : text.index("listen etcd")]
    text = text.replace(api, "").replace("127.0.0.1:2379", f"127.0.0.1:{port}")
    for node in plan.etcd:
        text = text.replace(f"{node.address}:2379", f"{members.all[node.name].address}:2379")
    return for_anybody(text)


def test_a_program_needs_to_know_no_member(door: Door) -> None:
    assert door.etcdctl("put", "a", "1").returncode == 0
    # The members themselves say that it is there.
    assert door.members.get(door.members[2], "a") == "1"
    assert door.etcdctl("get", "a", "--print-value-only").stdout.strip() == "1"

    # HAProxy does not speak for its clients: without a certificate of its own nobody is let in.
    assert door.etcdctl("get", "a", keys=False).returncode != 0

    door.members.leader().kill()
    end = time.monotonic() + 30
    while (done := door.etcdctl("put", "a", "2")).returncode:
        assert time.monotonic() < end, done.stderr
    left = [m for m in door.members.all.values() if (m.shell.folder / "pid").exists()]
    assert len(left) == 2
    assert door.members.get(left[0], "a") == "2"
    # Once HAProxy has noticed, every connection is sent to one of the others.
    time.sleep(5)
    assert [door.etcdctl("get", "a").returncode for _ in range(6)] == [0] * 6
