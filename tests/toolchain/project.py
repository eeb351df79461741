"""A Pulumi project of a test's own, run by the real engine with the installed toolchain."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

_ROOT = Path(__file__).resolve().parents[2]
_LOCAL = _ROOT / ".local"
_RUN_S = 120

Json = object


@dataclass(frozen=True, slots=True)
class Ran:
    """How a run of the command line ended."""

    code: int
    text: str

    def succeeded(self) -> Ran:
        """Itself, if it did; else the test fails with all that was printed."""
        assert self.code == 0, self.text
        return self


@dataclass(frozen=True, slots=True)
class Project:
    """One project with one stack, `test`, and a backend in its folder."""

    folder: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    limit_s: int = _RUN_S  # of one run of the command line

    @classmethod
    def make(cls, folder: Path, program: str, *, virtualenv: str = sys.prefix) -> Project:
        """Write the program and make the stack. Skips the test where no toolchain is installed."""
        if not (_LOCAL / "bin" / "pulumi").exists():
            pytest.skip("no toolchain is installed in this checkout: make setup")
        (folder / "state").mkdir(parents=True)
        # A home of its own for logs and credentials, with the plugins of the installed toolchain.
        (folder / "home").mkdir()
        (folder / "home/plugins").symlink_to(_LOCAL / "pulumi/plugins")
        runtime = f"name: tiny\nruntime: {{name: python, options: {{virtualenv: {virtualenv}}}}}\n"
        (folder / "Pulumi.yaml").write_text(runtime, encoding="utf-8")
        (folder / "__main__.py").write_text(program, encoding="utf-8")
        own = {
            "PATH": f"{_LOCAL / 'bin'}:{os.environ['PATH']}",
            "PULUMI_HOME": str(folder / "home"),
            "PULUMI_BACKEND_URL": f"file://{folder / 'state'}",
            "PULUMI_CONFIG_PASSPHRASE": "of the test",
            "PULUMI_SKIP_UPDATE_CHECK": "true",
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
        }
        usual = {key: text for key, text in os.environ.items() if key != "SSH_AUTH_SOCK"}
        project = cls(folder, {**usual, **own})
        project.pulumi("stack", "init", "test").succeeded()
        return project

    def pulumi(self, *words: str, **environment: str) -> Ran:
        """Run the command line to its end."""
        done = subprocess.run(
            ["pulumi", *words, "--non-interactive", "--color", "never"],
            cwd=self.folder,
            env={**self.environment, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=self.limit_s,
            check=False,
        )
        return Ran(done.returncode, done.stdout)

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start the command line in a process group of its own, as a terminal would."""
        return subprocess.Popen(
            ["pulumi", *words, "--non-interactive", "--color", "never"],
            cwd=self.folder,
            env=dict(self.environment),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def set(self, **config: str) -> None:
        """Set config values; an empty text removes one."""
        for key, text in config.items():
            words = ["set", key, text] if text else ["rm", key]
            self.pulumi("config", *words).succeeded()

    def up(self, **environment: str) -> Ran:
        """`pulumi up` without a preview before it."""
        return self.pulumi("up", "--yes", "--skip-preview", "--suppress-progress", **environment)

    def changes(self) -> dict[str, str]:
        """What a preview would do, by resource name, without what stays the same."""
        told = json.loads(self.pulumi("preview", "--json").succeeded().text)
        return {
            step["urn"].rsplit("::", 1)[-1]: step["op"]
            for step in told["steps"]
            if step["op"] != "same"
        }

    def output(self, name: str) -> str:
        """One output of the stack, secret or not."""
        return self.pulumi("stack", "output", name, "--show-secrets").succeeded().text.strip()

    def state(self) -> str:
        """The state file as it is on disk."""
        return (self.folder / "state/.pulumi/stacks/tiny/test.json").read_text(encoding="utf-8")
