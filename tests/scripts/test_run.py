"""The entry of every command on a node: nothing runs on half a transfer or with other scripts."""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from components.ssh import script
from stacks.phases import scripts
from tests.e2e.harness.waiting import wait_for
from tests.scripts.shell import SCRIPTS, VALUES


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """Scripts as on a node, and one more phase that tells that it ran."""
    folder = tmp_path / "scripts"
    shutil.copytree(SCRIPTS, folder)
    for name in ("probe", "leave", "preflight"):
        (folder / f"{name}.sh").write_text('main() { echo "ran $NODE ${TEXT:-}"; cat; }\n')
    return folder


def sum_of(folder: Path, *names: str) -> str:
    text = b"".join((folder / f"{name}.sh").read_bytes() for name in ("lib", *names))
    return hashlib.sha256(text).hexdigest()[:16]


def run(folder: Path, phase: str, stdin: str, word: str = "0123abcd") -> tuple[int, str]:
    done = subprocess.run(
        ["bash", str(folder / "run.sh"), phase, word],
        input=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=30,
        check=False,
    )
    return done.returncode, done.stdout


def values(folder: Path, phase: str, **more: str) -> str:
    return script.render({**VALUES, "SCRIPT_SUM": sum_of(folder, phase), **more})


@pytest.mark.parametrize("phase", ["etcd-member", "join", "mint", "retire", "wave", "snapshot"])
@pytest.mark.parametrize("name", ["UNTIL", "BOOTSTRAP_UNTIL"])
def test_a_text_that_is_kept_does_nothing_on_a_later_day(
    copied: Path, phase: str, name: str
) -> None:
    """Nor do other scripts than those that it was made with end it in an error."""
    (copied / f"{phase}.sh").write_text('main() { echo "ran $NODE"; }\n')
    now = int(time.time())
    told = values(copied, phase, **{name: str(now + 60)})
    assert run(copied, phase, told) == (0, "ran master-1\n")
    late = values(copied, phase, **{name: str(now - 1), "SCRIPT_SUM": "other"})
    code, text = run(copied, phase, late)
    assert code == 0
    assert "nothing is done" in text
    assert "ran" not in text.replace("runs once", "")


@pytest.mark.parametrize("phase", ["join", "mint", "retire", "wave"])
def test_a_text_of_a_version_that_set_no_end_is_over(copied: Path, phase: str) -> None:
    (copied / f"{phase}.sh").write_text('main() { echo "ran $NODE"; }\n')
    code, text = run(copied, phase, values(copied, phase))
    assert code == 0
    assert "nothing is done" in text


@pytest.fixture(params=["sshd", "sshd-session"])  # before OpenSSH 9.8, and of Debian 13
def sshd(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A shell by that name: it starts what it is given, as the process of an SSH session does."""
    program = tmp_path / str(request.param)
    shutil.copy("/bin/bash", program)
    return program


def test_who_waits_ends_with_the_session_that_asked(copied: Path, sshd: Path) -> None:
    phase = "main() { echo waiting; while true; do end_unheard; sleep 0.1; done; }\n"
    (copied / "probe.sh").write_text(phase)
    (copied / "values").write_text(values(copied, "probe"))
    command = f"bash {copied}/run.sh probe 0 <{copied}/values >{copied}/out 2>&1; true"
    with subprocess.Popen([sshd, "-c", command]) as session:
        wait_for("the phase", lambda: _missing(copied / "out", "waiting"), limit_s=20)
        session.kill()
    wait_for("its end", lambda: _missing(copied / "out", "is gone"), limit_s=20)


def test_a_run_that_gets_its_turn_when_nobody_waits_for_it_does_nothing(
    copied: Path, sshd: Path
) -> None:
    phase = f"STATE={copied}/state LOCK={copied}/lock\nmain() {{ echo here; lock; echo did it; }}\n"
    (copied / "probe.sh").write_text(phase)
    (copied / "values").write_text(values(copied, "probe"))
    command = f"bash {copied}/run.sh probe 0 <{copied}/values >{copied}/out 2>&1; true"
    with (copied / "lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with subprocess.Popen([sshd, "-c", command]) as session:
            wait_for("the phase", lambda: _missing(copied / "out", "here"), limit_s=20)
            session.kill()
    wait_for("its end", lambda: _missing(copied / "out", "is gone"), limit_s=20)
    assert "did it" not in (copied / "out").read_text()


def _missing(file: Path, word: str) -> str:
    text = file.read_text() if file.exists() else "no output"
    return "" if word in text else text or "no output"


def test_values_arrive_whatever_they_hold(copied: Path) -> None:
    text = 'a\'b "$HOME" `id` $(id) \\ {x}\n*'
    status, out = run(copied, "probe", values(copied, "probe", TEXT=text))
    assert (status, out) == (0, f"ran master-1 {text}\n")


@pytest.mark.parametrize("keep", [0, 1, 40, -1, -2, -5])
def test_half_a_transfer_runs_nothing(copied: Path, keep: int) -> None:
    whole = values(copied, "probe", TEXT="x" * 100)
    status, out = run(copied, "probe", whole[:keep].rstrip("\n") if keep < 0 else whole[:keep])
    if keep == -1:
        assert status == 0  # only the last newline is missing: all values are there
    else:
        assert status == 1
        assert "bytes of values arrived" in out
        assert "ran" not in out


def test_scripts_of_another_plan_are_refused(copied: Path) -> None:
    text = values(copied, "probe")
    with (copied / "lib.sh").open("a") as lib:
        lib.write("# newer\n")
    status, out = run(copied, "probe", text)
    assert status == 1
    assert "not those of this plan" in out
    assert "ran master-1" not in out


def test_what_a_phase_sources_counts_too(copied: Path) -> None:
    (copied / "shared.sh").write_text('shared() { echo "shared"; }\n')
    (copied / "probe.sh").write_text('source "$here/shared.sh"\nmain() { shared; }\n')
    text = script.render({**VALUES, "SCRIPT_SUM": sum_of(copied, "probe", "shared")})
    assert run(copied, "probe", text) == (0, "shared\n")
    with (copied / "shared.sh").open("a") as shared:
        shared.write("# newer\n")
    assert "not those of this plan" in run(copied, "probe", text)[1]


def test_plan_and_node_sum_up_every_phase_alike() -> None:
    names = sorted(path.stem for path in SCRIPTS.glob("*.sh") if "main()" in path.read_text())
    assert "decommission" in names
    code = f"here={SCRIPTS}\n{_function('sum_of')}\nfor phase in {' '.join(names)}; do sum_of $phase; done"
    done = subprocess.run(
        ["bash", "-c", code], stdout=subprocess.PIPE, text=True, timeout=30, check=True
    )
    assert done.stdout.split() == [scripts.script_sum(name) for name in names]


def _function(name: str) -> str:
    """A function of run.sh, which cannot be sourced."""
    lines = (SCRIPTS / "run.sh").read_text().splitlines()
    start = lines.index(f"{name}() {{")
    return "\n".join(lines[start : lines.index("}", start) + 1])


def test_phases_by_hand_bring_all_they_need() -> None:
    """`make preflight` and `make verify` send one text, with whatever the phase sources in its place."""
    for name in ("preflight", "gate"):
        assert "\nsource " not in scripts.whole(name)


@pytest.mark.parametrize(("word", "kept"), [("keep", "1"), ("", "no"), ("keeps", "no")])
def test_the_choice_to_keep_stands_in_the_command(copied: Path, word: str, kept: str) -> None:
    (copied / "leave.sh").write_text('main() { echo "kept ${KEEP:-no}"; }\n')
    assert run(copied, "leave", values(copied, "leave"), word) == (0, f"kept {kept}\n")


@pytest.mark.parametrize("phase", ["leave", "preflight"])
def test_what_keeps_its_first_values_works_with_newer_scripts(copied: Path, phase: str) -> None:
    """Their stdin stays that of the first day: a new connection, or removal, must not need it renewed."""
    text = values(copied, phase)
    with (copied / "lib.sh").open("a") as lib:
        lib.write("# newer\n")
    assert run(copied, phase, text)[0] == 0


def test_a_phase_cannot_read_what_is_left_on_stdin(copied: Path) -> None:
    status, out = run(copied, "probe", values(copied, "probe"))
    assert (status, out) == (0, "ran master-1 \n")
