"""Stand-ins in the place of what cannot be downloaded, and how to tell them from the official."""

from __future__ import annotations

import importlib.metadata
import shlex
import subprocess
import sys
from pathlib import Path

from toolchain.progress import say

_ROOT = Path(__file__).resolve().parents[1]
_REQUIREMENTS = Path(__file__).with_name("requirements.txt")
_MARK = "# Stand-in of the lab; an official program replaces it."


def launcher(statement: str, *arguments: str) -> str:
    """A shell script that becomes Python running `statement`, in no setting of the caller's."""
    code = f"import sys; sys.path.insert(0, {str(_ROOT)!r}); {statement}"
    words = [sys.executable, "-I", "-c", code, *arguments]
    return f'#!/bin/sh\n{_MARK}\nexec {shlex.join(words)} "$@"\n'


def is_official(program: Path) -> bool:
    """Whether a program is there that is none of kube-ha."""
    if not program.is_file():
        return False
    with program.open("rb") as file:
        return _MARK.encode() not in file.read(4096)


def install_libraries() -> None:
    """Install what the stand-ins import, if it is not there in the pinned version."""
    pins = [line.strip() for line in _REQUIREMENTS.read_text(encoding="utf-8").splitlines()]
    missing = [pin for pin in pins if "==" in pin and not _is_installed(pin)]
    if not missing:
        return
    say("plugins", f"installing {', '.join(missing)} for the stand-ins")
    words = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*words, "-r", str(_REQUIREMENTS)], check=True)


def put_script(path: Path, text: str) -> bool:
    """Make `path` an executable with this text; whether that changed anything."""
    if path.is_file() and not path.is_symlink() and path.read_text(encoding="utf-8") == text:
        return False
    path.unlink(missing_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
    return True


def _is_installed(pin: str) -> bool:
    name, _, version = pin.partition("==")
    try:
        return importlib.metadata.version(name) == version
    except importlib.metadata.PackageNotFoundError:
        return False
