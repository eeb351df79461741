"""Runs functions of the node scripts with stub commands first on PATH, and tells what was called."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

SCRIPTS = Path(__file__).parents[2] / "components/scripts"
VALUES = {"NODE": "master-1", "CLUSTER": "dev", "CLUSTER_ID": "0123456789ab", "CONTAINER": "1"}
OWNER = "dev 0123456789ab master-1"


@dataclass(frozen=True, slots=True)
class Shell:
    """A folder that stands for the machine's state, and its stubs."""

    folder: Path

    @property
    def state(self) -> Path:
        return self.folder / "home/state"

    @property
    def root(self) -> Path:
        """What stands for / where files are taken away."""
        return self.folder / "root"

    @property
    def identity(self) -> Path:
        """The certificate and key of the kubelet."""
        return self.root / "var/lib/kubelet/pki/kubelet-client-current.pem"

    @property
    def calls(self) -> list[str]:
        """What was called, in order: name and arguments, parted by spaces."""
        log = self.folder / "calls"
        return log.read_text().splitlines() if log.exists() else []

    def forget(self) -> None:
        (self.folder / "calls").unlink(missing_ok=True)

    def stub(self, name: str, body: str = "") -> None:
        """A command that records its call and then runs `body`, which sees $calls (how many so far)."""
        path = self.folder / "bin" / name
        path.parent.mkdir(exist_ok=True)
        log = shlex.quote(str(self.folder / "calls"))
        path.write_text(
            f'#!/bin/bash\nprintf "%s\\n" "{name} $*" >>{log}\n'
            f'calls=$(grep -c "^{name} " {log})\n{body}\n'
        )
        path.chmod(0o755)

    def run(
        self,
        code: str,
        *,
        phase: str | None = None,
        values: Mapping[str, str] | None = None,
        fails: bool = False,
    ) -> str:
        """Source lib.sh and a phase, run `code`; what it printed. Asserts that it fails only if it is to."""
        self.state.mkdir(parents=True, exist_ok=True)
        given = {**VALUES, **(values or {})}
        lines = [
            *(f"{name}={shlex.quote(value)}" for name, value in given.items()),
            f"source {SCRIPTS}/lib.sh",
            f"here={SCRIPTS} PATH={self.folder}/bin:$PATH HOME_DIR={self.folder}/home",
            f"STATE={self.state} LOCK={self.folder}/lock ROOT={self.root}",
            f"IDENTITY={self.identity} CLUSTER_CA={self.folder}/ca",
            *([f"source {SCRIPTS}/{phase}.sh"] if phase else []),
            # Stubs of etcdctl listen nowhere.
            *(["open_port() { :; }"] if phase in ("nodes", "retire", "rotation", "wave") else []),
            code,
        ]
        done = subprocess.run(
            ["bash", "-c", "\n".join(lines)],
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            timeout=180,  # real members on a busy computer
            check=False,
        )
        assert (done.returncode != 0) == fails, done.stdout
        return done.stdout
