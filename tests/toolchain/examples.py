"""The program of this checkout with a stack file of examples/, never applied."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from tests.toolchain.project import Project

ROOT = Path(__file__).resolve().parents[2]
# What the program and its files are; the stack file and its hosts are copies.
PARTS = ("__main__.py", "Pulumi.yaml", "stacks", "components", "artifacts")


def thousand(folder: Path, *, limit_s: int) -> Project:
    """Stack `thousand` of examples/thousand.yaml, whose machines take a key made here: `key`.

    `limit_s` is that of each run of the engine.
    """
    made = Project.make(folder, "")
    for name in PARTS:
        (made.folder / name).unlink(missing_ok=True)
        (made.folder / name).symlink_to(ROOT / name)
    (made.folder / ".venv").symlink_to(sys.prefix)
    (made.folder / ".local").symlink_to(ROOT / ".local")
    key = made.folder / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    text = (ROOT / "examples/thousand.yaml").read_text()
    text = text.replace("agent: true", f"privateKeyFile: {key}")
    (made.folder / "Pulumi.thousand.yaml").write_text(text)
    for file in (ROOT / "examples").glob("thousand-*.csv"):
        shutil.copy(file, made.folder)
    made = replace(made, limit_s=limit_s)
    made.pulumi("stack", "init", "thousand").succeeded()
    return made
