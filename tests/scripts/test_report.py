"""What a machine gives to a report: every text that is asked for, its end alone, whatever does not answer there."""

from __future__ import annotations

from pathlib import Path

import pytest

from operations.reports import machines
from tests.scripts.shell import Shell

ASK = "facts phases warnings etcd members kube-apiserver nodes pods"


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    made = Shell(tmp_path)
    for path, text in (("etc/os-release", "ID=debian\n"), ("var/log/pods/kube-system_kube-apiserver-master-1_1/kube-apiserver/0.log", "api log\n")):  # fmt: skip
        (made.root / path).parent.mkdir(parents=True, exist_ok=True)
        (made.root / path).write_text(text)
    made.state.mkdir(parents=True)
    (made.state / "kubeadm.log").write_text("kubeadm said\n")
    made.stub("journalctl", 'echo "journal $*"')
    made.stub("kubectl", 'echo "the server could not find it" >&2; exit 1')
    made.stub("systemctl")
    return made


def told(shell: Shell, *, bytes_: int = 4000) -> dict[str, str]:
    values = {"ASK": ASK, "SINCE_S": "3600", "BYTES": str(bytes_)}
    printed = shell.run("main", phase="report", values=values)
    assert printed.splitlines()[-1] == "end"
    return machines.parsed(printed, {name: name for name in ASK.split()})


def test_each_text_is_there(shell: Shell) -> None:
    found = told(shell)
    assert set(found) == set(ASK.split())
    assert "ID=debian" in found["facts"]
    assert "kubeadm.log" in found["facts"]
    assert "kubeadm said" in found["phases"]
    assert found["kube-apiserver"] == "api log\n"
    assert "--since -3600s -u etcd" in found["etcd"]
    assert "-p warning" in found["warnings"]


def test_what_does_not_answer_is_told_and_stops_nothing(shell: Shell) -> None:
    found = told(shell)
    assert "the server could not find it" in found["nodes"]
    assert "exit code 1" in found["pods"]
    assert "nobody listens at 127.0.0.1:2379" in found["members"]


def test_of_a_long_one_the_end_is_kept(shell: Shell) -> None:
    shell.stub("journalctl", "seq 1 100000")
    found = told(shell, bytes_=1000)
    assert found["etcd"].endswith("99999\n100000\n")
    assert max(map(len, found.values())) <= 1000


def test_nothing_is_written(shell: Shell) -> None:
    told(shell)
    before = {path: path.stat().st_mtime_ns for path in shell.folder.rglob("*")}
    told(shell)
    changed = {path for path in shell.folder.rglob("*") if before.get(path) != path.stat().st_mtime_ns}  # fmt: skip
    assert {path.name for path in changed} <= {"calls"}
