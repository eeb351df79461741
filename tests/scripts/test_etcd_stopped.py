"""What ends beside a member of etcd that was removed: the words of a real member, and what is made of them."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.scripts.real_etcd import Members
from tests.scripts.shell import SCRIPTS, Shell

LOCAL = "spec:\n  - --etcd-servers=https://127.0.0.1:2379\n  - --v=2\n"
APART = "spec:\n  - --etcd-servers=https://10.0.0.4:2379,https://10.0.0.5:2379\n"
MANIFEST = "etc/kubernetes/manifests/kube-apiserver.yaml"
ASIDE = "var/lib/kube-ha/aside.removed/kube-apiserver.yaml"


@pytest.fixture
def members(tmp_path: Path) -> Iterator[Members]:
    members = Members(tmp_path / "etcd")
    try:
        members.start()
        yield members
    finally:
        members.stop()


def stopped(shell: Shell, log: Path, manifest: str) -> None:
    """etcd has said what is in `log`, and its unit has stopped."""
    file = shell.root / MANIFEST
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(manifest)
    shell.stub("journalctl", f'if [[ $1 == -q ]]; then tail -n 200 "{log}"; fi')
    shell.stub("pkill")
    subprocess.run(
        ["bash", SCRIPTS / "etcd-stopped.sh"],
        env={
            "PATH": f"{shell.folder}/bin:{os.environ['PATH']}",
            "ROOT": str(shell.root),
            "INVOCATION_ID": "0123",
        },
        check=True,
    )


def test_the_api_server_of_a_removed_member_ends(members: Members, shell: Shell) -> None:
    log = members[3].shell.folder / "etcd.log"
    stopped(shell, log, LOCAL)
    assert (shell.root / MANIFEST).exists(), "it was not removed yet"

    row = next(r for r in members.answer(members[1], "member", "list").splitlines() if "r-3" in r)
    end = time.monotonic() + 30
    while members.ask(members[1], "member", "remove", row.partition(",")[0]).returncode:
        assert time.monotonic() < end, "etcd takes no change of its members"
        time.sleep(0.5)
    while "permanently removed" not in log.read_text():
        assert time.monotonic() < end, log.read_text()[-800:]
        time.sleep(0.1)

    stopped(shell, log, APART)
    assert (shell.root / MANIFEST).exists(), "it asks other members"
    assert not any(call.startswith("pkill") for call in shell.calls)

    stopped(shell, log, LOCAL)
    assert not (shell.root / MANIFEST).exists()
    assert (shell.root / ASIDE).read_text() == LOCAL
    assert shell.calls[-1] == "pkill -KILL -x kube-apiserver"
    assert any("_SYSTEMD_INVOCATION_ID=0123" in call for call in shell.calls)


REMOVED = "the member has been permanently removed from the cluster"
RECORD = f'{{"level":"warn","ts":"2026-01-01T00:00:00.000000Z","caller":"etcdserver/server.go:1172","msg":"server error","error":"{REMOVED}"}}'


@pytest.mark.parametrize(
    ("line", "ends"),
    [
        (RECORD, True),
        (REMOVED, False),
        (f"x{RECORD}", False),
        (f"{RECORD}x", False),
        (json.dumps({"level": "warn", "ts": "t", "caller": "c", "msg": REMOVED}), False),
        (json.dumps({"level": "warn", "ts": "t", "caller": "c", "msg": "apply request took too long", "request": RECORD}), False),
        (json.dumps({"level": "warn", "ts": "t", "caller": "c", "msg": "server error", "error": f"role {REMOVED}"}), False),
    ],
)  # fmt: skip
def test_a_name_that_reads_like_it_ends_nothing(shell: Shell, line: str, *, ends: bool) -> None:
    log = shell.folder / "etcd.log"
    log.write_text(f"{line}\n")
    stopped(shell, log, LOCAL)
    assert (shell.root / MANIFEST).exists() != ends


def test_it_is_back_once_the_machine_is_a_member_again(shell: Shell) -> None:
    aside = shell.folder / "home/aside.removed/kube-apiserver.yaml"
    aside.parent.mkdir(parents=True)
    aside.write_text(LOCAL)
    values = {"ADDRESS": "10.0.0.1", "MEMBERS": "", "ARCH_DIR": "etcd-v3.6.0-linux-amd64"}
    code = "api_server_ready() { :; }; steady() { :; }; recall_api_server; bring_back"
    shell.run(code, phase="etcd-member", values=values)
    assert (shell.root / MANIFEST).read_text() == LOCAL
    assert not list((shell.folder / "home").glob("aside*"))
