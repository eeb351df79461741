"""`make engine`, all that stacks of given machines need, on a computer that can run no lab."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

ROOT = Path(__file__).parents[2]
NOBODY = "65534"
# What a lab needs and given machines do not; `df` and `nproc` ask how big the computer is.
OF_A_LAB = (
    "sudo",
    "apt-get",
    "podman",
    "docker",
    "modprobe",
    "sysctl",
    "mmdebstrap",
    "df",
    "nproc",
)


@pytest.fixture
def checkout() -> Iterator[Path]:
    """Make and the lab's scripts, owned by a user without any right, with programs that tell their calls."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(ROOT / "lab", folder / "lab")
        for file in (
            "Makefile",
            "requirements.txt",
            "requirements-dev.txt",
            "requirements-plan.txt",
            "toolchain/requirements.txt",
        ):
            (folder / file).parent.mkdir(exist_ok=True)
            shutil.copy(ROOT / file, folder / file)
        (folder / "bin").mkdir()
        for program in OF_A_LAB:
            stub(folder / "bin" / program, f"echo {program} >>{folder}/asked; exit 1")
        made = "mkdir -p .venv/bin .venv/lib && cp bin/told .venv/bin/python && cp bin/told .venv/bin/pip"
        stub(folder / "bin/python3", f"[[ $1 == -c ]] || {{ {made}; }}")
        stub(folder / "bin/told", f'echo "${{0##*/}} $*" >>{folder}/calls')
        (folder / "lab/host.sh").write_text(f"echo host.sh >>{folder}/asked; exit 1\n")
        if os.geteuid() == 0:
            subprocess.run(["chown", "-R", NOBODY, str(folder)], check=True)
        yield folder


def stub(path: Path, body: str) -> None:
    path.write_text(f"#!/bin/bash\n{body}\n")
    path.chmod(0o755)


def make(checkout: Path, target: str) -> subprocess.CompletedProcess[str]:
    as_nobody = ["setpriv", "--reuid", NOBODY, "--clear-groups", "--"] if os.geteuid() == 0 else []
    return subprocess.run(
        [*as_nobody, "make", "-s", target],
        cwd=checkout,
        env={"PATH": f"{checkout}/bin:{os.environ['PATH']}", "HOME": str(checkout)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_it_asks_neither_for_root_nor_for_a_lab(checkout: Path) -> None:
    done = make(checkout, "engine")
    assert done.returncode == 0, done.stderr
    assert not (checkout / "asked").exists(), (checkout / "asked").read_text()
    calls = (checkout / "calls").read_text().splitlines()
    assert calls[0].startswith("pip install ")
    assert calls[-1] == "python -m toolchain.install"


def test_a_second_time_installs_nothing(checkout: Path) -> None:
    assert make(checkout, "engine").returncode == 0
    (checkout / "calls").unlink()
    assert make(checkout, "engine").returncode == 0
    assert (checkout / "calls").read_text().splitlines() == ["python -m toolchain.install"]


def test_setup_of_a_lab_asks_first(checkout: Path) -> None:
    """So the stand-ins above do notice who asks."""
    assert make(checkout, "setup").returncode != 0
    assert (checkout / "asked").read_text().splitlines() == ["host.sh"]
    assert not (checkout / "calls").exists()
