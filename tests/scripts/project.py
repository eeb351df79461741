"""A folder with a stack of adopted machines in git, and an engine that says what is in files there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from stacks.edits import memory
from tests.unit.configs import adopted, planned

ROOT = Path(__file__).parents[2]

# Says what is in `stack`, `diff`, `problems` and `events`, and fails with `failure`; each run is a line in `calls`, and `pid`
# is that of the last one. As the real one, it writes a salt into a stack file that has none.
PULUMI = r"""#!/bin/bash
printf '%s\n' "$*" >>calls
echo $$ >pid
env >environment
case $1 in
  stack) if [[ $2 == select ]]; then exit; fi
    [[ -f stack ]] || { echo "error: no stack named 'prod' found" >&2; exit 6; }
    cat stack ;;
  preview)
    for word; do if [[ $word == --event-log=* ]]; then cp events "${word#*=}"; fi; done
    grep -q encryptionsalt Pulumi.prod.yaml || echo 'encryptionsalt: v1:new' >>Pulumi.prod.yaml
    cat diff; cat problems >&2; exit "$(cat code)" ;;
  up) if [[ -f failure ]]; then cat failure; exit 255; fi
    echo applied ;;
esac
"""


@dataclass(frozen=True, slots=True)
class Project:
    folder: Path

    def says(self, **files: str) -> None:
        for name, text in files.items():
            (self.folder / name).write_text(text)

    def wants(self, edits: Mapping[str, object] | None = None, *, stack: str = "prod") -> None:
        config = {f"kube-ha:{key}": value for key, value in adopted(edits).items()}
        self.says(**{f"Pulumi.{stack}.yaml": yaml.safe_dump({"config": config})})

    def commit(self) -> None:
        git = ["git", "-c", "user.name=x", "-c", "user.email=x@example.com"]
        named = ["Pulumi.prod.yaml", *(["addons"] if (self.folder / "addons").exists() else [])]
        for words in (["add", *named], ["commit", "-qm", "x"]):
            subprocess.run([*git, *words], cwd=self.folder, check=True)

    def applied(self, edits: Mapping[str, object] | None = None) -> None:
        """The engine has a stack that remembers this config as its last success."""
        self.says(stack=json.dumps({"applied": json.dumps(memory.of(planned(adopted(edits))))}))

    def steps(self, *steps: tuple[str, str, str]) -> None:
        """(operation, type, name) of what the engine would do, in its order."""
        events = [
            {
                "resourcePreEvent": {
                    "metadata": {
                        "op": op,
                        "type": kind,
                        "urn": f"urn:pulumi:prod::kube-ha::{kind}::{name}",
                        "detailedDiff": {"stdin": {"kind": "update"}} if op == "update" else None,
                    }
                }
            }
            for op, kind, name in steps
        ]
        noise = [{"preludeEvent": {}}, {"summaryEvent": {"durationSeconds": 4}}]
        self.says(events="".join(json.dumps(event) + "\n" for event in [*noise, *events]))

    def run(self, module: str, *words: str, fails: bool = False, **extra: str) -> str:
        """What `python -m <module>` prints; asserts that it fails only if it is to."""
        done = subprocess.run(
            [sys.executable, "-m", module, *words],
            cwd=self.folder,
            env=self.environment(**extra),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
            check=False,
        )
        assert (done.returncode != 0) == fails, done.stdout
        return done.stdout

    def environment(self, **extra: str) -> dict[str, str]:
        given = {
            "PATH": f"{self.folder}/bin:{os.environ['PATH']}",
            "HOME": str(self.folder),
            "PYTHONPATH": str(ROOT),
            "PULUMI_BACKEND_URL": "s3://states",
        }
        return {key: value for key, value in (given | extra).items() if value}

    def read(self, name: str) -> str:
        return (self.folder / name).read_text()

    @property
    def calls(self) -> list[str]:
        """The engine's arguments, run by run."""
        log = self.folder / "calls"
        return log.read_text().splitlines() if log.exists() else []


def project(folder: Path) -> Project:
    """Adopted machines, committed; the engine knows the stack, never applied, and finds no step."""
    found = Project(folder)
    (folder / "bin").mkdir()
    found.says(**{"bin/pulumi": PULUMI}, stack="{}", diff="Previewing\n", problems="", code="0")
    (folder / "bin/pulumi").chmod(0o755)
    found.steps()
    found.wants()
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    found.commit()
    return found
