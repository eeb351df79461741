"""Operations on the cluster of a story, and what its etcd machines can lose."""

from __future__ import annotations

import subprocess

from tests.e2e.harness import lab
from tests.e2e.harness.stack import Stack


def operation(stack: Stack, name: str, *words: str, fails: bool = False) -> str:
    """What `python -m operations.NAME STACK` printed. Raises AssertionError when it ends otherwise than it should."""
    code, said = _run(stack, name, *words)
    assert (code != 0) == fails, said
    return said


def drifted(stack: Stack) -> list[str]:
    """What `make drift` tells, but for the disk of this computer, which all machines share."""
    _, said = _run(stack, "drift")
    return [
        line for line in said.splitlines() if line.startswith("  - ") and "the disk of" not in line
    ]


def _run(stack: Stack, name: str, *words: str) -> tuple[int, str]:
    done = subprocess.run(
        [str(lab.ROOT / ".venv/bin/python"), "-m", f"operations.{name}", stack.name, *words],
        cwd=lab.ROOT,
        env=stack.environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
    )
    said = done.stdout + done.stderr
    with (stack.evidence / f"{name}.log").open("a") as log:
        log.write(said)
    return done.returncode, said


def write(stack: Stack, name: str) -> None:
    stack.kubectl("create", "configmap", name, "--from-literal=a=b")


def written(stack: Stack) -> set[str]:
    words = stack.kubectl("get", "configmaps", "-o", "name").split()
    return {word.removeprefix("configmap/") for word in words} - {"kube-root-ca.crt"}


def destroy(stack: Stack, *names: str) -> None:
    """Machines and their disks are gone."""
    for name in names:
        lab.machine_sh("down", LAB=stack.lab, MACHINE=name)
