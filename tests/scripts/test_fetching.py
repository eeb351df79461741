"""Backups and restores by names in the object store: what the operations say and do, with a real store behind them."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from components.ssh.hop import Hop
from operations import backup, restore
from operations.engine import stack
from operations.engine.engine import Engine, StackError
from operations.engine.stack import Stack
from operations.etcd_snapshots import object_store, transfer
from operations.ssh import client
from operations.ssh.client import Answer, Target
from stacks.cluster.resolve import plan
from stacks.load import load
from tests.scripts.real_etcd import BACKUP_KEY, CLUSTER_ID
from tests.scripts.s3_server import ACCESS_KEY, BUCKET, REGION, SECRET, S3Server
from tests.unit.configs import lab, with_store

NAMES = [
    "dev-20260101T000000Z-7-manual.db.enc",  # by an older program
    "dev-20260102T000000Z-9-master-2-schedule.db.enc",
    "dev-20260103T000000Z-12-master-1-change.db.gz.enc",  # the only one that is sealed
]


def text_of(name: str) -> bytes:
    text = f"text of {name}".encode()
    if not name.endswith(".gz.enc"):
        return text
    head = f"kube-ha-snapshot:1:{name}:12"
    own = hmac.digest(BACKUP_KEY.encode(), b"kube-ha snapshot seal", "sha256")
    total = hmac.digest(own, f"{head}\n".encode() + text, "sha256").hex()
    return text + f"\n{head}:{total}\n".encode()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[S3Server]:
    """Three snapshots in it that are none."""
    found = S3Server(tmp_path / "s3")
    folder = found.bucket / f"prod/dev-{CLUSTER_ID}"
    folder.mkdir(parents=True)
    for name in NAMES:
        (folder / name).write_bytes(text_of(name))
        total = hashlib.sha256(text_of(name)).hexdigest()
        (folder / f"{name}.sha256").write_text(f"{total}  {name}\n")
    (folder / "notes.txt").write_text("x")
    try:
        found.start()
        yield found
    finally:
        found.stop()


@pytest.fixture
def known(server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stack:
    """Stack prod, whose store is the server; its secret comes from the engine."""
    monkeypatch.chdir(tmp_path)
    said = {
        "endpoint": "https://s3.example.com",
        "bucket": BUCKET,
        "prefix": "prod",
        "region": REGION,
        "accessKey": ACCESS_KEY,
    }
    wanted = plan(load(lab(with_store(**said))))
    targets = {
        node.name: Target(
            hop=Hop(address=node.address, port=22, user=node.name, host_key="", key="")
        )
        for node in wanted.nodes
    }
    found = Stack(plan=wanted, targets=targets, cluster_id=CLUSTER_ID, backup_key=BACKUP_KEY)
    monkeypatch.setattr(stack, "read", lambda *_, **__: found)
    real = object_store.of
    # No config may name 127.0.0.1.
    monkeypatch.setattr(
        object_store, "of", lambda *words: replace(real(*words), endpoint=server.endpoint)
    )
    monkeypatch.setattr(Engine, "secret", lambda _, key: {"kube-ha:backupSecretKey": SECRET}[key])
    return found


@pytest.mark.usefixtures("known")
def test_what_lies_there_is_listed_and_fetched_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert backup.main(["prod", "--list"]) == 0
    assert capsys.readouterr().out.split() == NAMES
    assert backup.main(["prod", "--snapshot", "store:latest"]) == 0
    file = Path(".local/backups/prod") / NAMES[2]
    assert capsys.readouterr().out.strip() == str(file)
    assert file.read_bytes() == text_of(NAMES[2])
    words = ["prod", "--snapshot", f"store:{NAMES[0]}", "--to", str(tmp_path / "there")]
    assert backup.main(words) == 0
    assert (tmp_path / "there" / NAMES[0]).read_bytes() == text_of(NAMES[0])
    assert backup.main(["prod", "--snapshot", "store:none.db"]) == 1
    assert "is not a name of a snapshot" in capsys.readouterr().err


@pytest.mark.usefixtures("known")
def test_a_restore_by_name_refuses_what_is_no_snapshot_and_touches_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(client, "run", lambda *_, **__: pytest.fail("a machine was asked"))
    assert restore.main(["prod", "--snapshot", "store:latest"]) == 1
    said = capsys.readouterr()
    assert f"{NAMES[2]} is brought to .local/backups/prod" in said.out
    assert "is not a snapshot of etcd" in said.err


def test_a_stack_without_a_store_says_so(
    known: Stack, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bare = Stack(plan=plan(load(lab())), targets=known.targets, cluster_id=CLUSTER_ID)
    monkeypatch.setattr(stack, "read", lambda *_, **__: bare)
    assert backup.main(["prod", "--list"]) == 1
    assert "Pulumi.prod.yaml names no object store" in capsys.readouterr().err


@pytest.mark.usefixtures("known")
def test_a_backup_that_was_not_sent_is_brought_here_and_fails_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked: list[tuple[str, str, str]] = []
    name = "dev-20260104T000000Z-13-master-1-manual.db.enc"
    total = hashlib.sha256(b"whole").hexdigest()

    def run(target: Target, phase: str, values: Mapping[str, str], *, limit_s: int) -> Answer:
        assert limit_s
        asked.append((target.hop.user, phase, values["BACKUP_STORE"]))
        text = (
            f"snapshot\t/var/lib/kube-ha/backups/{name}\t{total}\t5\t13\n"
            "ERROR master-1: the snapshot is at /x, but not at the store: 503 SlowDown: no\n  do: wait"
        )
        return Answer(status=1, text=text, asked_at_s=0)

    monkeypatch.setattr(client, "run", run)
    monkeypatch.setattr(transfer, "fetch", lambda _target, _path, into: into.write_bytes(b"whole"))
    assert backup.main(["prod"]) == 1
    said = capsys.readouterr()
    # Another machine would meet the same store.
    assert asked == [("master-1", "snapshot", f"https://s3.example.com/{BUCKET}/prod")]
    file = Path(".local/backups/prod") / name
    assert file.read_bytes() == b"whole"
    assert f"{file} is here and whole" in said.err
    assert "503 SlowDown" in said.err


def test_the_secret_is_asked_of_the_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "pulumi"
    program.write_text(
        '#!/bin/sh\n[ "$*" = "config get kube-ha:backupSecretKey --stack prod --non-interactive" ] '
        "&& printf '%s\\n' 'a b\\c' || { echo 'error: no such key' >&2; exit 1; }\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.chdir(tmp_path)
    assert Engine("prod").secret("kube-ha:backupSecretKey") == "a b\\c"
    with pytest.raises(StackError, match="kube-ha:other cannot be read: error: no such key"):
        Engine("prod").secret("kube-ha:other")
