"""Labs of the tests on this computer, through the same scripts that a user has."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PREFIX = "test-"  # labs of tests are called so; no other lab is ever touched


class LabError(RuntimeError):
    """A command of the lab failed; the text holds the command and its last words."""


def shell(
    command: list[str],
    *,
    stdin: str = "",
    values: dict[str, str] | None = None,
    timeout_s: float = 120,
) -> str:
    """Stdout of a program started in the project's folder. Raises LabError."""
    try:
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=os.environ | (values or {}),
            input=stdin,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise LabError(f"{' '.join(command)[:300]}: no end within {timeout_s} s") from None
    if done.returncode:
        words = (done.stdout[-1500:] + done.stderr[-1500:]).strip()
        raise LabError(f"{' '.join(command)[:300]}: exit {done.returncode}\n{words}")
    return done.stdout


def engine_command(*arguments: str) -> list[str]:
    """Command line of podman or docker, whichever lab/engine.sh takes."""
    return ["bash", "-c", 'source lab/engine.sh; engine "$@"', "engine", *arguments]


def engine(*arguments: str, timeout_s: float = 120) -> str:
    """Stdout of podman or docker. Raises LabError."""
    return shell(engine_command(*arguments), timeout_s=timeout_s)


def machine_sh(verb: str, *, stdin: str = "", **values: str) -> str:
    """Run a verb of lab/machine.sh with these values (LAB, MACHINE, ADDRESS ...)."""
    return shell(["lab/machine.sh", verb], stdin=stdin, values=values)


def containers(lab: str, *, running: bool = False) -> list[str]:
    """Names of a lab's containers, stopped ones too unless only those that run are wanted."""
    every = [] if running else ["--all"]
    words = engine("ps", *every, "--filter", f"label=kube-ha.lab={lab}", "--format", "{{.Names}}")
    return sorted(words.split())


def networks(label: str = "kube-ha.lab") -> list[str]:
    """Names of all labs' networks, or of those with another label."""
    words = engine("network", "ls", "--filter", f"label={label}", "--format", "{{.Name}}")
    return sorted(words.split())


def owner(lab: str) -> str:
    """The checkout that made this lab; empty where there is no such lab."""
    template = '{{index .Labels "kube-ha.checkout"}}'
    try:
        return engine("network", "inspect", f"kube-ha-{lab}", "--format", template).strip()
    except LabError:
        return ""


def of_tests() -> list[str]:
    """Labs of this checkout's tests that have a network; machines cannot be without one."""
    mark = f"kube-ha-{PREFIX}"
    labs = [name.removeprefix("kube-ha-") for name in networks() if name.startswith(mark)]
    return [lab for lab in labs if owner(lab) == str(ROOT)]


def free(lab: str) -> None:
    """Remove machines, mirror and network of one test lab. Raises LabError when it is another's."""
    if not lab.startswith(PREFIX):
        raise LabError(f"{lab} is not a lab of the tests")
    checkout = owner(lab)
    if checkout not in ("", str(ROOT)) and Path(checkout).is_dir():
        raise LabError(f"{lab} belongs to the tests of {checkout}, which may be running")
    machine_sh("lab-down", LAB=lab)
