"""`make hostkeys`: real SSH servers, the keys that they show, and what a stack file has of them."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

import asyncssh
import pytest

from components.ssh.hop import Hop
from operations import hostkeys
from operations.engine.engine import StackError
from operations.hostkeys import Server
from operations.ssh import host_keys
from operations.ssh.client import Target
from stacks.config.values import KEY_TYPES
from stacks.edits.memory import fingerprint
from tests.toolchain.sshd import free_port
from tests.unit.configs import GONE, adopted, edited, lab

ECDSA, ED25519, RSA = "ecdsa-sha2-nistp256", "ssh-ed25519", "ssh-rsa"
Start = Callable[..., tuple[int, dict[str, str]]]


class _Server(asyncssh.SSHServer):
    """Lets the key `user` in, and forwards."""

    def __init__(self, user: asyncssh.SSHKey) -> None:
        self._user = user

    def begin_auth(self, username: str) -> bool:
        return True

    def public_key_auth_supported(self) -> bool:
        return True

    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        return bool(key.public_data == self._user.public_data)

    def connection_requested(self, host: str, port: int, orig_host: str, orig_port: int) -> bool:
        return True


@pytest.fixture(scope="module")
def user() -> asyncssh.SSHKey:
    return asyncssh.generate_private_key(ED25519)


@pytest.fixture
def start(user: asyncssh.SSHKey) -> Iterator[Start]:
    """Starts a server with keys of these kinds: its port, and the keys by kind, `type base64`."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    servers: list[asyncssh.SSHAcceptor] = []

    async def listen(port: int, keys: list[asyncssh.SSHKey]) -> asyncssh.SSHAcceptor:
        return await asyncssh.listen(
            "127.0.0.1", port, server_host_keys=keys, server_factory=partial(_Server, user)
        )

    def begin(*kinds: str) -> tuple[int, dict[str, str]]:
        keys = {kind: asyncssh.generate_private_key(kind) for kind in kinds}
        port = free_port()
        listening = asyncio.run_coroutine_threadsafe(listen(port, [*keys.values()]), loop)
        servers.append(listening.result(10))
        lines = {kind: key.export_public_key().decode().split() for kind, key in keys.items()}
        return port, {kind: " ".join(line[:2]) for kind, line in lines.items()}

    async def end() -> None:
        for server in servers:
            server.close()
            await server.wait_closed()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()

    yield begin
    asyncio.run_coroutine_threadsafe(end(), loop).result(10)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


def target(port: int, **others: object) -> Target:
    known = {"address": "127.0.0.1", "port": port, "user": "ops", "host_key": None, "key": None}
    return Target(hop=Hop(**{**known, **others}))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kinds", "first", "shown"),
    [
        ((RSA, ECDSA, ED25519), "", ECDSA),
        ((RSA, ECDSA, ED25519), ED25519, ED25519),
        ((RSA, ED25519), "", ED25519),
        ((ED25519,), ECDSA, ED25519),
        ((ECDSA,), ED25519, ECDSA),
        ((ECDSA,), RSA, ECDSA),
    ],
)
def test_a_machine_shows_a_key_that_can_be_pinned(
    start: Start, kinds: tuple[str, ...], first: str, shown: str
) -> None:
    port, keys = start(*kinds)
    assert host_keys.shown(target(port), first=first)[0] == keys[shown]


def test_a_machine_with_an_rsa_key_alone_shows_none(start: Start) -> None:
    port, _ = start(RSA)
    key, said = host_keys.shown(target(port))
    assert (key, bool(said)) == (None, True)


def test_nobody_is_logged_in_and_no_key_is_offered(start: Start) -> None:
    """The key's text is none: the client would stop at it, were it looked at."""
    port, keys = start(ECDSA)
    assert host_keys.shown(target(port, key="no key at all"))[0] == keys[ECDSA]


def test_a_machine_that_is_off_is_told() -> None:
    key, said = host_keys.shown(target(free_port()))
    assert key is None
    assert "Connection refused" in said


@pytest.mark.parametrize("is_pinned", [True, False])
def test_behind_a_bastion_machines_are_asked_once_its_own_key_is_proved(
    start: Start, user: asyncssh.SSHKey, *, is_pinned: bool
) -> None:
    jump, of_jump = start(ECDSA)
    port, keys = start(ED25519)
    way = target(
        jump,
        host_key=of_jump[ECDSA] if is_pinned else None,
        key=user.export_private_key("openssh").decode(),
    )
    behind = Target(hop=target(port).hop, bastion=way.hop)
    first, second = hostkeys.scan(
        [
            Server(name="the bastion", path="machines.ssh.bastion", target=way),
            Server(name="master-1", path="pools.master.hosts[0]", target=behind),
        ]
    )
    assert first.shown == of_jump[ECDSA]
    assert second.shown == (keys[ED25519] if is_pinned else None)
    assert ("not asked" in second.said) != is_pinned


@pytest.fixture
def written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[Mapping[str, object]], Path]:
    monkeypatch.chdir(tmp_path)

    def write(raw: Mapping[str, object]) -> Path:
        file = tmp_path / "Pulumi.prod.yaml"
        file.write_text(
            json.dumps({"config": {f"kube-ha:{key}": value for key, value in raw.items()}})
        )
        return file

    return write


Written = Callable[[Mapping[str, object]], Path]


@pytest.mark.parametrize("missing", [GONE, "TODO"])
def test_a_file_without_keys_is_read(written: Written, missing: object) -> None:
    file = written(
        adopted({"pools.master.hosts.0.hostKey": missing, "cluster.kubernetes": "9.9.9"})
    )
    found = hostkeys.servers(file)
    assert [one.name for one in found] == [
        "master-1",
        "master-2",
        "master-3",
        "worker-1",
        "worker-2",
    ]
    assert [bool(one.target.hop.host_key) for one in found] == [False, True, True, True, True]
    assert found[0].path == "pools.master.hosts[0]"


def test_a_key_file_that_is_still_to_be_made_stops_nobody(written: Written) -> None:
    ssh = {
        "privateKeyFile": "none-yet",
        "bastion": {"address": "192.0.2.250", "privateKeyFile": "none"},
    }
    assert (
        len(hostkeys.servers(written(adopted({"machines.ssh": {"privateKeyFile": "none-yet"}}))))
        == 5
    )
    with pytest.raises(StackError, match=r"key file cannot be read"):
        hostkeys.servers(written(adopted({"machines.ssh": ssh})))


def test_machines_are_asked_at_their_address_for_ssh(written: Written) -> None:
    found = hostkeys.servers(
        written(adopted({"pools.master.hosts.0.sshAddress": "one.example.com"}))
    )
    assert [one.target.hop.address for one in found[:2]] == ["one.example.com", "192.0.2.12"]


def test_who_is_never_dialled_is_not_asked(written: Written) -> None:
    nodes = {"worker-1": {"state": "lost"}, "worker-2": {"state": "decommissioned"}}
    names = [one.name for one in hostkeys.servers(written(adopted({"nodes": nodes})))]
    assert names == ["master-1", "master-2", "master-3", "worker-2"]


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (lab(), "are made, with their host keys"),
        (adopted({"pools.master.hosts.0.address": "here"}), r"pools\.master\.hosts\[0\]\.address"),
        (edited(adopted(), {"pools": GONE}), "pools"),
    ],
)
def test_a_file_by_which_nobody_is_found_is_refused(
    written: Written, raw: dict[str, object], words: str
) -> None:
    with pytest.raises(StackError, match=words):
        hostkeys.servers(written(raw))


def asked(name: str, port: int, pinned: str | None) -> Server:
    return Server(
        name=name, path=f"pools.master.hosts[{name}]", target=target(port, host_key=pinned)
    )


def test_each_machine_is_told_with_what_to_paste_and_how_to_compare(
    start: Start, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (one, of_one), (two, of_two), (three, of_three) = (
        start(ECDSA),
        start(ECDSA, ED25519),
        start(ED25519),
    )
    there = [
        asked("1", one, of_one[ECDSA]),
        asked("2", two, of_one[ECDSA]),
        asked("3", three, None),
    ]
    monkeypatch.setattr(hostkeys, "servers", lambda _: there)
    assert hostkeys.main(["prod"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"1  127.0.0.1:{one}  {fingerprint(of_one[ECDSA])}  on record"
    assert f"THE KEY ON RECORD IS ANOTHER ONE: {fingerprint(of_one[ECDSA])}" in lines[1]
    assert lines[2] == f"    hostKey: {of_two[ECDSA]}"
    assert lines[3].endswith(
        f"{fingerprint(of_three[ED25519])}  is not on record; below pools.master.hosts[3] write:"
    )
    assert lines[4] == f"    hostKey: {of_three[ED25519]}"
    assert lines[5] == "1 of 3 host keys are on record"
    assert "find out which before you replace it" in lines[6]
    assert lines[-2:] == [
        "  ssh-keygen -lf /etc/ssh/ssh_host_ecdsa_key.pub",
        "  ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub",
    ]


@pytest.mark.parametrize(("pinned", "code"), [(True, 0), (False, 1)])
def test_all_on_record_is_success_and_nothing_else_is(
    start: Start,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    *,
    pinned: bool,
    code: int,
) -> None:
    port, keys = start(ED25519)
    there = [asked("1", port, keys[ED25519] if pinned else None)]
    monkeypatch.setattr(hostkeys, "servers", lambda _: there)
    assert hostkeys.main(["prod"]) == code
    assert ("compare" in capsys.readouterr().out) != pinned


def test_who_shows_no_key_is_named_with_what_to_do(
    start: Start, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    port, keys = start(ECDSA)
    there = [asked("on", port, keys[ECDSA]), asked("off", free_port(), keys[ECDSA])]
    monkeypatch.setattr(hostkeys, "servers", lambda _: there)
    assert hostkeys.main(["prod"]) == 1
    told, way = capsys.readouterr().out.splitlines()[-2:]
    assert told.startswith("off: the line says why there is no key")
    assert way.startswith("  do: see that it is on")


def test_machines_with_the_same_key_are_told(
    start: Start, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    port, keys = start(ECDSA)
    there = [asked("1", port, keys[ECDSA]), asked("2", port, keys[ECDSA])]
    monkeypatch.setattr(hostkeys, "servers", lambda _: there)
    assert hostkeys.main(["prod"]) == 1
    out = capsys.readouterr().out
    assert "the same key as 2" in out
    assert "2 of 2 host keys are on record" in out


def test_every_kind_that_can_be_pinned_is_asked_for() -> None:
    """All that a stack file takes but RSA, which the engine's plugin would ask for with SHA-1."""
    assert {*host_keys.KINDS} == {*KEY_TYPES} - {RSA}
