"""The program of this checkout with stack files of a test's own."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from tests.toolchain.project import Project

ROOT = Path(__file__).resolve().parents[2]
# What the program and its files are; stack files and their hosts are copies.
PARTS = ("__main__.py", "Pulumi.yaml", "stacks", "components", "artifacts")


def program(folder: Path, *, limit_s: int) -> Project:
    """Without a stack, beside a key for its machines: `key`. `limit_s`: of each run of the engine."""
    made = Project.make(folder, "")
    for name in PARTS:
        (made.folder / name).unlink(missing_ok=True)
        (made.folder / name).symlink_to(ROOT / name)
    (made.folder / ".venv").symlink_to(sys.prefix)
    (made.folder / ".local").symlink_to(ROOT / ".local")
    words = [
        "ssh-keygen",
        "-q",
        "-t",
        "ed25519",
        "-N",
        "",
        "-C",
        "",
        "-f",
        str(made.folder / "key"),
    ]
    subprocess.run(words, check=True)
    return replace(made, limit_s=limit_s)


def thousand(folder: Path, *, limit_s: int) -> Project:
    """Stack `thousand` of examples/thousand.yaml, never applied, by that key in place of an agent's."""
    made = program(folder, limit_s=limit_s)
    text = (ROOT / "examples/thousand.yaml").read_text()
    text = text.replace("agent: true", f"privateKeyFile: {made.folder / 'key'}")
    (made.folder / "Pulumi.thousand.yaml").write_text(text)
    for file in (ROOT / "examples").glob("thousand-*.csv"):
        shutil.copy(file, made.folder)
    made.pulumi("stack", "init", "thousand").succeeded()
    return made
