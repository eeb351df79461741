"""kubectl with the kubeconfig of a stack's administrator, and no other."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from artifacts import build, bundle, programs
from artifacts.download import DownloadError, Upstream
from artifacts.lock import LockError
from artifacts.lock import read as read_lock
from artifacts.pins import PinError
from operations.engine.engine import StackError

_LIMIT_S = 60
_BUNDLE = Path(".local/bundle")
_PROGRAM = Path(".local/bin/kubectl")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kubectl:
    """The program, and the file that says which cluster it asks."""

    program: Path
    kubeconfig: Path

    def command(self, *words: str) -> list[str]:
        """The words of a process."""
        return [str(self.program), "--kubeconfig", str(self.kubeconfig), *words]

    def run(
        self, *words: str, stdin: str = "", limit_s: float = _LIMIT_S
    ) -> subprocess.CompletedProcess[str]:
        """Ended, however. Raises StackError where there is no answer in time."""
        command = self.command(*words)
        try:
            return subprocess.run(
                command, input=stdin, capture_output=True, text=True, timeout=limit_s, check=False
            )
        except subprocess.TimeoutExpired:
            raise StackError(
                f"kubectl {words[0]}: no answer of the API within {limit_s:.0f} s\n"
                "  do: see that this computer reaches the API (make api, in clouds)"
            ) from None

    def text(self, *words: str, stdin: str = "", limit_s: float = _LIMIT_S) -> str:
        """Stdout. Raises StackError."""
        done = self.run(*words, stdin=stdin, limit_s=limit_s)
        if done.returncode:
            raise StackError(
                f"kubectl {' '.join(words[:3])}: {last_line(done.stderr)}\n"
                "  do: see that this computer reaches the API (make status; make api, in clouds)"
            )
        return done.stdout

    def items(self, *words: str) -> list[dict[str, object]]:
        """The objects that `kubectl get` lists. Raises StackError."""
        listed = json.loads(self.text("get", *words, "--output", "json"))["items"]
        return listed if isinstance(listed, list) else []


def program() -> Path:
    """That of the bundle, or the one of this computer. Raises StackError."""
    if _PROGRAM.exists():
        return _PROGRAM.absolute()
    if found := shutil.which("kubectl"):
        return Path(found)
    raise StackError("this computer has no kubectl\n  do: install it, or make bundle")


def last_line(text: str) -> str:
    """Of what a program said of its failure."""
    return (text.strip().splitlines() or ["no output"])[-1]


def programs_of(
    kubernetes: str, names: Sequence[str], *, also: Sequence[tuple[str, str]] = ()
) -> Mapping[str, Path]:
    """Programs of that version for this computer, by name. Raises StackError."""
    try:
        lock = read_lock(kubernetes, build.host_arch(), also=also)
        places = programs.Places(bundle=_BUNDLE, upstream=Upstream(), cache=bundle.cache_folder())
        return programs.of(lock, names, places)
    except (LockError, DownloadError, PinError, build.BuildError) as error:
        raise StackError(str(error)) from None
