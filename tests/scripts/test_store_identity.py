"""Snapshots sent by the machine's own identity: the real curl, and a cloud that checks who asks."""

from __future__ import annotations

import hashlib
import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest

from operations.engine.engine import StackError
from operations.etcd_snapshots import cloud_login
from operations.etcd_snapshots.object_store import Store
from stacks.providers.aws import store as aws
from stacks.providers.gcp import store as gcp
from stacks.providers.store_identity import Credentials, StoreIdentity
from tests.scripts.cloud_store import BUCKET, REGION, CloudStore, running
from tests.scripts.shell import VALUES, Shell

FOLDER = f"clusters/dev-{VALUES['CLUSTER_ID']}"
NAME = "dev-20260101T000000Z-7-master-1-manual.db.gz.enc"
WORDS: dict[str, StoreIdentity] = {"ec2": aws.IDENTITY, "gce": gcp.IDENTITY}
Kind = Literal["ec2", "gce"]


@pytest.fixture(params=["ec2", "gce"])
def cloud(request: pytest.FixtureRequest) -> Iterator[CloudStore]:
    with running(CloudStore(request.param)) as found:
        yield found


@pytest.fixture
def ec2() -> Iterator[CloudStore]:
    with running(CloudStore("ec2")) as found:
        yield found


def sent(
    shell: Shell, cloud: CloudStore, *, fails: bool = False, code: str = "", **others: str
) -> str:
    """What the phase says that sends a snapshot, which lies on the machine."""
    backups = shell.folder / "home/backups"
    backups.mkdir(parents=True, exist_ok=True)
    (backups / NAME).write_bytes(b"sealed")
    total = hashlib.sha256(b"sealed").hexdigest()
    (backups / f"{NAME}.sha256").write_text(f"{total}  {NAME}\n")
    values = {
        "REASON": "manual",
        "ADDRESS": "10.0.0.1",
        "MEMBERS": "master-1=10.0.0.1",
        "BACKUP_KEEP": "1",
        "BACKUP_STORE": f"{cloud.at}/{BUCKET}/clusters",
        "BACKUP_REGION": REGION,
        "BACKUP_ACCESS_KEY": "",
        "BACKUP_IDENTITY": cloud.kind,
        "BACKUP_PRUNE": "1",
        "METADATA": cloud.at,
        "METADATA_S": "3",
        "STILL_S": "2",
        **others,
    }
    return shell.run(code or f"send_off {NAME}", phase="snapshot", values=values, fails=fails)


def unsent(shell: Shell) -> str:
    """Why, as status and drift tell it."""
    return (shell.state / "backup.unsent").read_text().rstrip("\n").split("\t")[2]


def secrets(cloud: CloudStore) -> list[str]:
    found = [one for key in cloud.handed for one in (key.secret, key.token.rstrip("="))]
    return [*found, *([cloud.session] if cloud.session else [])]


def test_a_snapshot_goes_there_without_any_key_and_old_ones_go(
    shell: Shell, cloud: CloudStore
) -> None:
    old = f"{FOLDER}/dev-20250101T000000Z-7-master-2-manual.db.gz.enc"
    other = f"clusters/dev-ffffffffffff/{NAME}"
    cloud.objects = {old: b"x", f"{old}.sha256": b"x", other: b"x"}
    out = sent(shell, cloud)
    assert sorted(cloud.objects) == sorted([f"{FOLDER}/{NAME}", f"{FOLDER}/{NAME}.sha256", other])
    assert cloud.objects[f"{FOLDER}/{NAME}"] == b"sealed"
    assert "deleted 2 old objects there" in out
    assert len(cloud.handed) == 1  # good for all requests
    assert (shell.state / "backup.sent").exists()
    assert not (shell.state / "backup.unsent").exists()
    if cloud.kind == "ec2":
        assert [one.split()[0] for one in cloud.asked] == ["PUT", "GET", "GET"]
        for one in cloud.headers:
            assert "x-amz-security-token" in one["authorization"]


def test_nothing_secret_is_in_a_command_line_a_file_or_a_log(
    shell: Shell, cloud: CloudStore
) -> None:
    record = shell.folder / "argv"
    shell.stub(
        "curl",
        f'tr "\\0" "\\n" </proc/$$/cmdline >>{record}; env >>{record}; exec /usr/bin/curl "$@"',
    )
    out = sent(shell, cloud)
    cloud.refused = (403, "AccessDenied")
    out += sent(shell, cloud, fails=True)
    assert "-K" in record.read_text()
    assert len(secrets(cloud)) >= 4
    for file in [*shell.folder.rglob("*")]:
        if file.is_file():
            for secret in secrets(cloud):
                assert secret not in file.read_text(errors="replace"), file
    assert not [secret for secret in secrets(cloud) if secret in out]


def test_credentials_that_end_soon_are_asked_for_again(shell: Shell, cloud: CloudStore) -> None:
    cloud.left_s = 200
    sent(shell, cloud)
    assert len(cloud.handed) == 4  # once before, and with each of two uploads and a list
    assert len(cloud.seen) == 3


def test_credentials_that_have_ended_are_not_shown_to_the_store(
    shell: Shell, cloud: CloudStore
) -> None:
    cloud.left_s = -5 if cloud.kind == "ec2" else 0
    out = sent(shell, cloud, fails=True)
    assert cloud.seen == []
    assert "by this clock" in unsent(shell)
    assert "ERROR master-1: the snapshot is at" in out
    assert "do: set the clock of master-1 (" in out


def test_a_store_that_takes_them_for_ended_is_told_with_its_answer(
    shell: Shell, ec2: CloudStore
) -> None:
    ec2.refused = (400, "ExpiredToken")
    out = sent(shell, ec2, fails=True)
    assert unsent(shell) == "400 ExpiredToken: no"
    assert "set the clock of master-1" in out


def test_a_metadata_service_that_does_not_answer_is_named_and_the_snapshot_stays(
    shell: Shell, cloud: CloudStore
) -> None:
    with socket.socket() as silent:  # takes connections, and nobody serves them
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        at = f"http://127.0.0.1:{silent.getsockname()[1]}"
        begun = time.monotonic()
        out = sent(shell, cloud, fails=True, METADATA=at)
    assert time.monotonic() - begun < 30
    what = {
        "ec2": "latest/api/token",
        "gce": "computeMetadata/v1/instance/service-accounts/default/token",
    }
    assert (
        f"the metadata service at {at} gave no {what[cloud.kind]} within 3 s; last answer: curl: (28)"
        in out
    )
    assert "do: see that master-1 has what the stack gave it (pulumi refresh, pulumi up)" in out
    assert f"the snapshot is at {shell.folder}/home/backups/{NAME}" in out
    assert (shell.folder / "home/backups" / NAME).exists()
    assert unsent(shell).startswith("the metadata service")
    assert cloud.seen == []


def test_one_that_is_away_for_a_moment_is_asked_again(shell: Shell, cloud: CloudStore) -> None:
    cloud.failing = 1
    sent(shell, cloud, METADATA_S="20")
    assert f"{FOLDER}/{NAME}" in cloud.objects
    assert "of-an-error" not in str(cloud.headers)


def test_a_machine_that_has_no_identity_is_told(shell: Shell, cloud: CloudStore) -> None:
    cloud.role = ""
    out = sent(shell, cloud, fails=True)
    what = {"ec2": "instance profile", "gce": "service account"}[cloud.kind]
    assert f"last answer: 404, it has no {what}" in out
    assert "pulumi up" in out


@pytest.mark.parametrize("role", ["a role", "../../x", 'x"\nurl = "http://127.0.0.1:9'])
def test_a_role_that_can_be_none_is_asked_nothing_of(
    shell: Shell, ec2: CloudStore, role: str
) -> None:
    ec2.role = role
    out = sent(shell, ec2, fails=True)
    assert "names no role of this machine" in out or "gave no" in out
    assert ec2.handed == []


def test_a_store_that_refuses_is_told_with_what_grants_it(shell: Shell, cloud: CloudStore) -> None:
    cloud.refused = (403, "AccessDenied")
    out = sent(shell, cloud, fails=True)
    assert unsent(shell) == "403 AccessDenied: no"
    todo = {
        "ec2": "the role of master-1 may write there",
        "gce": "the service account of master-1 may write there",
    }
    assert todo[cloud.kind] in out
    assert "accessKey" not in out
    assert len(cloud.seen) == 1


def test_where_old_ones_cannot_be_deleted_the_new_one_is_there(
    shell: Shell, cloud: CloudStore
) -> None:
    code = f'prune_store() {{ reason=$(asked /other/x {"0" * 64}) || not_pruned "$reason"; }}; send_off {NAME}'
    out = sent(shell, cloud, fails=True, code=code)
    assert "let master-1 list and delete there" in out
    assert f"{FOLDER}/{NAME}" in cloud.objects


def test_googles_token_goes_by_a_curl_that_cannot_sign(shell: Shell) -> None:
    shell.stub(
        "curl",
        'if [[ $* == *--version ]]; then echo "curl 7.81.0 (x86_64)"; else exec /usr/bin/curl "$@"; fi',
    )
    with running(CloudStore("gce")) as cloud:
        sent(shell, cloud)
        assert f"{FOLDER}/{NAME}" in cloud.objects
    with running(CloudStore("ec2")) as cloud:
        assert "curl 7.81.0 here cannot sign it" in sent(shell, cloud, fails=True)


def test_the_key_of_a_machine_that_needs_none_any_more_is_deleted(shell: Shell) -> None:
    shell.stub("systemctl")
    pki = shell.root / "etc/kube-ha/etcd"
    pki.mkdir(parents=True)
    for name in ("store.key", "store-ca.crt"):
        (pki / name).write_text("x\n")
    shell.state.mkdir(parents=True)
    (shell.state / "pki.sums").write_text(f"0 {pki}/store-ca.crt\n0 {pki}/store.key\n")
    (shell.state / "backup.sent").write_text("1\ta.db\n")
    values = {
        "BACKUP_EVERY_H": "6",
        "BACKUP_KEEP": "3",
        "BACKUP_DIRECTORY": "",
        "BACKUP_ENCRYPT": "1",
        "ADDRESS": "10.0.0.1",
        "MEMBERS": "master-1=10.0.0.1",
        "BACKUP_STORE": "https://storage.googleapis.com/acme",
        "BACKUP_IDENTITY": "gce",
        "BACKUP_CA": "1",
    }
    out = shell.run("backups; backups", phase="etcd-member", values=values)
    assert out.count("the object store knows this machine without a key") == 1
    assert sorted(path.name for path in pki.iterdir()) == ["backup.values", "store-ca.crt"]
    assert (shell.state / "pki.sums").read_text() == f"0 {pki}/store-ca.crt\n"
    assert (shell.state / "backup.sent").exists()
    assert "BACKUP_IDENTITY=gce\n" in (pki / "backup.values").read_text()


# --- On the computer of whoever restores -------------------------------------------------------------


def reader(cloud: CloudStore, known: Credentials) -> Store:
    return Store(
        endpoint=cloud.at,
        bucket=BUCKET,
        folder=FOLDER,
        region=REGION,
        access_key=known.access_key,
        secret=known.secret,
        token=known.token,
        by_key=False,
        ca=None,
    )


def printed(cloud: CloudStore) -> str:
    """What the cloud's own program prints of new credentials."""
    key = cloud.new_key()
    if cloud.kind == "gce":
        return key.token.replace("=", "") + "\n"
    said = {"Version": 1, "AccessKeyId": key.id, "SecretAccessKey": key.secret}
    return json.dumps({**said, "SessionToken": key.token, "Expiration": str(key.ends)})


def program(folder: Path, monkeypatch: pytest.MonkeyPatch, kind: str, body: str) -> None:
    """The only one of that name on this computer."""
    bin_ = folder / "programs"
    bin_.mkdir(exist_ok=True)
    file = bin_ / WORDS[kind].program[0]
    file.write_text(f"#!/bin/bash\n{body}\n")
    file.chmod(0o755)
    monkeypatch.setenv("PATH", f"{bin_}:/usr/bin:/bin")


def test_whoever_is_logged_in_lists_and_fetches(
    shell: Shell, cloud: CloudStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent(shell, cloud)
    (tmp_path / "said").write_text(printed(cloud))
    words = " ".join(WORDS[cloud.kind].command[1:])
    program(tmp_path, monkeypatch, cloud.kind, f'[[ "$*" == "{words}" ]] && cat {tmp_path}/said')
    store = reader(cloud, cloud_login.credentials(WORDS[cloud.kind]))
    assert store.names() == [NAME]
    assert store.fetch(NAME, tmp_path / "here").read_bytes() == b"sealed"
    cloud.refused = (403, "AccessDenied")
    with pytest.raises(
        StackError, match=r"403 AccessDenied: no\n.*you have to list and read"
    ) as told:
        store.names()
    assert "backupSecretKey" not in str(told.value)


def test_a_login_that_is_missing_is_told_and_what_it_prints_is_not(
    cloud: CloudStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    identity = WORDS[cloud.kind]
    program(tmp_path, monkeypatch, cloud.kind, "echo 'you are nobody' >&2; exit 1")
    with pytest.raises(StackError, match="you are nobody\n  do: ") as told:
        cloud_login.credentials(identity)
    assert identity.log_in in str(told.value)
    program(tmp_path, monkeypatch, cloud.kind, 'echo \'{"half": "a-secret\'')
    with pytest.raises(StackError, match="prints no credentials") as told:
        cloud_login.credentials(identity)
    assert "a-secret" not in str(told.value)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(StackError, match=f"there is no {identity.program[0]} on this computer"):
        cloud_login.credentials(identity)
