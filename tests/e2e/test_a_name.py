"""Story: a DNS name that the user makes points to the masters, then to an address that the user moves; every update looks where it leads."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

from tests.e2e.harness import config, lab
from tests.e2e.harness.load import Load
from tests.e2e.harness.stack import Stack

ALONE = "the new address has to serve within 6 s"
NAME = "api.names.example"
MASTERS = ("10.93.70.11", "10.93.70.12")
STRANGER = "10.93.70.99"
ADDRESS = "10.93.70.5"
# Gone from one machine, there on the next: what the test itself needs for it, and a client that tries again.
_MOVED_MS = 6000


class Names:
    """What the engine and its programs alone find in /etc/hosts: this computer's own file stays as it is."""

    def __init__(self, folder: Path, stack: Stack) -> None:
        self._hosts = folder / "hosts"
        engine = shutil.which("pulumi", path=stack.environment["PATH"])
        program = folder / "pulumi"
        program.write_text(
            f'#!/bin/sh\nexec unshare --mount sh -c \'mount --bind {self._hosts} /etc/hosts && exec {engine} "$@"\' pulumi "$@"\n'
        )
        program.chmod(0o755)
        stack.environment["PATH"] = f"{folder}:{stack.environment['PATH']}"
        self.lead()

    def lead(self, *addresses: str) -> None:
        """Let the name lead there; the same file, for it is what is mounted."""
        own = Path("/etc/hosts").read_text()
        self._hosts.write_text(own + "".join(f"{address} {NAME}\n" for address in addresses))


def wanted() -> config.Config:
    out = config.lab("test-a-name", "10.93.70.0/24", masters=2, workers=1)
    out["cluster"]["endpoint"] = f"{NAME}:6443"
    return out


@pytest.fixture(scope="module")
def stack(stack: Stack) -> Stack:
    # Machines are made before: the container engine is not for a file system of your own.
    stack.up()
    return stack


@pytest.fixture(scope="module")
def names(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Names:
    return Names(tmp_path_factory.mktemp("names"), stack)


def test_the_stack_says_which_records_to_make(stack: Stack, names: Names) -> None:
    stack.config["frontDoors"] = {"dns": "unmanaged", "verify": "here"}
    stack.write()
    names.lead(*MASTERS)
    stack.up()
    assert stack.output("dnsRecords") == [{"name": NAME, "type": "A", "values": [*MASTERS]}]
    again = stack.up()
    assert again.changes == {}


def test_one_that_leads_to_a_stranger_fails_the_up(stack: Stack, names: Names) -> None:
    names.lead(MASTERS[0], STRANGER)
    stack.edit("pools.worker.labels", {"tier": "one"})
    told = stack.up(fails=True).tail()
    assert f"points to {STRANGER} too, where no client belongs" in told
    assert f"make records of type A: {NAME} -> {', '.join(MASTERS)}; then run it again" in told
    names.lead(MASTERS[1])
    stack.up()


def test_clients_by_that_name_are_shown_a_certificate_for_it(stack: Stack) -> None:
    mirror = stack.node("mirror")
    mirror.put("/run/kube-ha-test/ca.crt", stack.node("worker-1").run("cat /etc/kube-ha/ca.crt"))
    for address in MASTERS:
        asked = f"curl -sS --max-time 8 --cacert /run/kube-ha-test/ca.crt --resolve {NAME}:6443:{address} https://{NAME}:6443/readyz"
        assert mirror.run(asked) == "ok"
    with pytest.raises(lab.LabError, match="no alternative certificate subject name matches"):
        mirror.run(asked.replace(NAME, f"other.{NAME}"))


def test_an_address_that_the_user_moves_is_listened_at_wherever_it_is(
    stack: Stack, names: Names
) -> None:
    """HAProxy is ours there, and what moves the address is not: no keepalived."""
    _have(stack, "master-1", there=True)
    names.lead(ADDRESS)
    stack.edit("frontDoors.vip", {"address": ADDRESS, "failover": "own"})
    assert f"write {NAME}:8443" in stack.up(fails=True).tail()  # where HAProxy listens
    stack.edit("cluster.endpoint", f"{NAME}:8443")
    stack.up()
    assert not stack.node("master-1").runs("keepalived")
    stack.forget_kubeconfig()
    with Load(stack, "own failover", outside=[f"{ADDRESS}:8443"]) as load:
        for start, end in (("master-1", "master-2"), ("master-2", "master-1")):
            _have(stack, start, there=False)
            _have(stack, end, there=True)
            time.sleep(3)
    for place, seen in load.seen().items():
        assert (seen.lost, seen.stale, seen.failed_twice) == (0, 0, 0), f"{place}: {seen}"
        assert seen.longest_gap_ms < _MOVED_MS, f"{place}: {seen}"
    assert stack.up().changes == {}


def _have(stack: Stack, name: str, *, there: bool) -> None:
    """What the user's own failover does: the address comes or goes, and its neighbours hear of it."""
    tell = f"ping -c 1 -W 1 -I {ADDRESS} 10.93.70.2 >/dev/null"
    move = f"ip address add {ADDRESS}/32 dev eth0 && {tell}"
    stack.node(name).run(move if there else f"ip address del {ADDRESS}/32 dev eth0")
