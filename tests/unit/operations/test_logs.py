"""Which logs are read, how, and what a machine's text may do to a terminal."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from components.ssh.hop import Hop
from operations import logs, session
from operations.engine import stack
from operations.logs import Wanted
from operations.ssh.client import Target
from stacks.phases import scripts
from tests.unit.configs import adopted, host_key, planned

HOP = Hop(address="192.0.2.11", port=22, user="ops", host_key=host_key(1), key="hidden")


@pytest.fixture
def machines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An SSH client whose machine runs the command here, by `bin` first; says as whom."""
    programs = {
        "ssh": f"#!/bin/bash\nprintf '%s\\n' \"$@\" >>{tmp_path}/arguments\n"
        f"[[ ! -e {tmp_path}/down ]] || {{ echo 'no route' >&2; exit 255; }}\neval \"${{@: -1}}\"\n",
        "sudo": '#!/bin/bash\nshift; exec "$@"\n',
        "journalctl": f"#!/bin/bash\n[[ ! -e {tmp_path}/quiet ]] || exit 0\necho \"$@\"; printf 'a\\033[2Jb\\n::add-mask::x\\n'\n",
    }
    (tmp_path / "bin").mkdir()
    for name, text in programs.items():
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setattr(logs, "_PODS", str(tmp_path / "pods"))
    monkeypatch.setattr(logs, "_STATE", str(tmp_path / "state"))
    found = stack.Stack(
        plan=planned(adopted()),
        targets={node.name: Target(hop=HOP) for node in planned(adopted()).nodes},
        cluster_id="1",
    )
    monkeypatch.setattr(stack, "read", lambda *_, **__: found)
    return tmp_path


def pod(machines: Path, folder: str, *lines: str) -> None:
    file = machines / "pods" / folder / "app/0.log"
    file.parent.mkdir(parents=True)
    file.write_text("".join(f"{line}\n" for line in lines))


def shown(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    assert logs.main(["prod", *words]) == code
    told = capsys.readouterr()
    return told.out if code == 0 else told.err


def test_a_units_journal_is_printed_as_plain_text(
    machines: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = shown(capsys, "--node", "master-1", "--unit", "kubelet")
    assert text.splitlines()[0].endswith("-u kubelet -n 200")
    assert text.splitlines()[1:] == ["a [2Jb", ": :add-mask::x"]
    assert "hidden" not in (machines / "arguments").read_text()


@pytest.mark.usefixtures("machines")
def test_of_several_nodes_each_line_has_its_node_in_their_order(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = shown(capsys, "--role", "master", "--unit", "kubelet", "--since", "2h")
    names = [line.split()[0] for line in text.splitlines()]
    assert names == [f"master-{number}" for number in (1, 1, 1, 2, 2, 2, 3, 3, 3)]
    assert "--since -7200s" in text
    assert shown(capsys, "--pool", "worker").count("worker-") == 6


def test_a_pod_is_found_by_how_its_name_begins(
    machines: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pod(machines, "kube-system_coredns-abc_uid", "2026-01-01T00:00:00Z stdout F served")
    pod(machines, "other_coredns-abc_uid", "2026-01-01T00:00:00Z stdout F of another")
    text = shown(capsys, "--node", "master-1", "--pod", "kube-system/coredns")
    assert "served" in text
    assert "of another" not in text
    assert "of another" in shown(capsys, "--node", "master-1", "--pod", "coredns")


def test_lines_of_a_pod_before_the_time_are_left_out(
    machines: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    now = subprocess.run(["date", "+%FT%T.5%:z"], capture_output=True, text=True, check=True)
    pod(
        machines,
        "a_web_uid",
        "2020-01-01T00:00:00.1Z stdout F old",
        f"{now.stdout.strip()} stdout F new",
    )
    text = shown(capsys, "--node", "master-1", "--pod", "web", "--since", "15m")
    assert "new" in text
    assert "old" not in text


def test_the_log_of_a_phase_is_what_its_scripts_write(
    machines: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (machines / "state").mkdir()
    (machines / "state/kubeadm.log").write_text("[init] said\n")
    (machines / "state/gate.log").write_text("of another phase\n")
    text = shown(capsys, "--node", "master-1", "--phase", "master")
    assert text == "[init] said\n"
    assert "no log of phase join" not in text


def test_what_is_not_there_is_an_error_of_that_node(
    machines: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = shown(capsys, "--node", "master-2", "--pod", "a/b", code=1)
    assert "ERROR master-2 (192.0.2.12): exit code 1: no log of a pod a/b here" in text
    (machines / "down").touch()
    text = shown(capsys, "--node", "master-2", code=1)
    assert "ERROR master-2 (192.0.2.12): cannot be reached: no route\n  do: " in text


def test_a_log_without_lines_is_said_to_be_empty(
    machines: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (machines / "quiet").touch()
    assert logs.main(["prod", "--node", "master-2", "--unit", "kubelt"]) == 0
    assert capsys.readouterr().err == "master-2: no lines\n"


@pytest.mark.usefixtures("machines")
def test_every_bad_argument_is_told_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--unit", "a;b", "--pod", "$(x)", "--phase", "none", "--since", "yesterday"]
    text = shown(capsys, *words, code=1)
    for part in ("UNIT and POD and PHASE", "UNIT: ", "POD: ", "PHASE: ", "SINCE: "):
        assert part in text
    assert "master, " in text
    assert "there is no node nobody; there are: master-1" in shown(
        capsys, "--node", "nobody", code=1
    )
    assert "POOL=master|worker" in shown(capsys, "--pool", "x", code=1)


@pytest.mark.parametrize("phase", ["master", "join", "gate"])
def test_files_of_a_phase_are_those_that_its_scripts_name(phase: str) -> None:
    asked = logs.command(Wanted(phase=phase))
    for line in scripts.whole(phase).splitlines():
        if '>"$STATE/' in line and ".log" in line:
            assert line.partition('>"$STATE/')[2].partition('"')[0] in asked


def test_a_followed_log_is_followed_on_the_machine() -> None:
    assert logs.command(Wanted(unit="kubelet", follow=True)).endswith("-f")
    assert "tail -n 200 -F" in logs.command(Wanted(pod="a/b", follow=True))


def test_one_command_runs_as_the_user_and_ends_with_its_code(
    machines: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert session.main(["prod", "master-1", "--command", "echo it\\'s; exit 7"]) == 7
    assert capfd.readouterr().out == "it's\n"
    assert "-t" not in (machines / "arguments").read_text().splitlines()


def test_a_session_has_a_terminal_and_leaves_no_key(
    machines: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (machines / "down").touch()
    assert session.main(["prod", "master-1"]) == 255
    arguments = (machines / "arguments").read_text().splitlines()
    assert arguments[-3:] == ["-t", "--", "192.0.2.11"]
    (key,) = [word.partition("=")[2] for word in arguments if word.startswith("IdentityFile=")]
    assert not Path(key).exists()
    assert session.main(["prod", "gone"]) == 1
    assert "there is no node gone" in capfd.readouterr().err
