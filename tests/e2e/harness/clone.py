"""A clone of the repository, in which a user types commands."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.e2e.harness import lab
from tests.e2e.harness.lab import ROOT


class Clone:
    """A fresh clone and a shell in it; its dev cluster has a name and addresses of its own."""

    def __init__(self, folder: Path, lab_name: str, network: str) -> None:
        """`network`: the first three numbers of the addresses of its machines."""
        self.folder = folder
        subprocess.run(["git", "clone", "-q", str(ROOT), str(folder)], check=True)
        file = folder / "Pulumi.dev.yaml"
        text = re.sub(r"\bname: dev\b", f"name: {lab_name}", file.read_text())
        file.write_text(text.replace("10.92.0.", f"{network}."))

    def types(self, line: str, *, fails: bool = False, limit_s: float = 900) -> str:
        """All that a command prints."""
        done = subprocess.run(
            ["bash", "-c", f"if [ -f .env ]; then source .env; fi; {line}"],
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=limit_s,
            check=False,
        )
        assert (done.returncode != 0) == fails, f"{line}\n{done.stdout[-4000:]}"
        return done.stdout


@contextmanager
def cloned(folder: Path, lab_name: str, network: str) -> Iterator[Clone]:
    """A clone in that folder, whose machines and files are gone at the end."""
    lab.free(lab_name)
    try:
        yield Clone(folder, lab_name, network)
    finally:
        # First: a lab is freed by no other checkout than its own, as long as that is there.
        shutil.rmtree(folder, ignore_errors=True)
        lab.free(lab_name)
        # What a clone cleans away, the next story needs.
        subprocess.run(["make", "setup"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


def ready(shown: str) -> set[str]:
    """Nodes that are Ready in what `kubectl get nodes` prints."""
    return {row.split()[0] for row in shown.splitlines() if " Ready " in row}
