"""The engine as an operation meets it: its environment, its program, its memory of a stack."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import IO

_ENVIRONMENT = Path(".env")
_LOCAL = Path(".local")  # where `make engine` puts program and plugins
_NO_STACK = "no stack named"  # the engine's words; its exit codes tell no reasons

# The program does not print the plan of an update that was shown already.
PLAN_SHOWN = {"KUBE_HA_PLAN_SHOWN": "1"}


class StackError(Exception):
    """Why an operation cannot start; the text says what to do."""


class Engine:
    """One stack, in the backend that the environment names, else in this checkout's own."""

    def __init__(self, stack: str) -> None:
        self.stack = stack
        self.environment = environment(os.environ)
        self._program = shutil.which("pulumi", path=self.environment.get("PATH"))

    @property
    def own_backend(self) -> bool:
        """Whether the state is in this checkout, and nowhere else."""
        return not _names_backend(os.environ)

    @property
    def backend(self) -> str:
        """Its URL, for a person."""
        return self.environment.get("PULUMI_BACKEND_URL") or "https://api.pulumi.com"

    def kept_here(self) -> dict[str, Path]:
        """Which of state and passphrase are in this checkout alone, with their places."""
        scheme, _, state = self.backend.partition("?")[0].partition("://")
        found = {
            "state": state if scheme == "file" else "",
            "passphrase": self.environment.get("PULUMI_CONFIG_PASSPHRASE_FILE", ""),
        }
        here = Path.cwd().resolve()
        places = {what: Path(text).expanduser().resolve() for what, text in found.items() if text}
        return {what: path for what, path in places.items() if path.is_relative_to(here)}

    def outputs(self) -> dict[str, object]:
        """Outputs of the stack, secrets readable; empty when it has none. Raises StackError."""
        found = self._ask("output", "--show-secrets", "--json")
        return found if isinstance(found, dict) else {}

    def cluster_id(self) -> str:
        """What machines were marked with by a first `up` that failed, and so has no outputs.

        Every phase has it among its values. Empty when none was started. Raises StackError.
        """
        stored = json.dumps(self._ask("export"))  # secrets are ciphertext there
        found = re.search(r"\\nCLUSTER_ID=([0-9a-f]+)\\n", stored)
        return found[1] if found else ""

    def state(self, *, clear: bool) -> dict[str, dict[str, object]]:
        """All that it knows of the stack, as for an import; empty when there is none of that name.

        `clear`: its secrets in plain text. Raises StackError.
        """
        found = self._ask("export", *(["--show-secrets"] if clear else []))
        return found if isinstance(found, dict) else {}

    def secret(self, key: str) -> str:
        """The text of an encrypted key of the stack file. Raises StackError."""
        done = self.run("config", "get", key)
        if done.returncode or not done.stdout.strip():
            said = done.stderr.strip().splitlines()
            raise StackError(
                f"{key} cannot be read: {said[-1] if said else 'it is empty'}\n"
                f"  do: pulumi config set --secret {key} --stack {self.stack}"
            )
        return done.stdout.strip()

    def knows_stack(self) -> bool:
        """Whether the backend has this stack. Raises StackError."""
        self._command(())  # without a program nobody knows
        return self._ask("output", "--json") is not None

    def keep_state(self, *, local: bool) -> None:
        """See that there is a backend which will still be there tomorrow.

        Without one in the environment that is this checkout's own, made here if it is not yet.
        Raises StackError on a CI runner, which forgets it and with it the keys of the cluster; only
        a lab is forgotten along.
        """
        if not self.own_backend:
            return
        if os.environ.get("CI") and not local:
            raise StackError(
                f"stack {self.stack} would keep its state in this checkout, and a CI runner forgets"
                " that\n  do: set PULUMI_BACKEND_URL (docs/operate/ci.md)"
            )
        if not _ENVIRONMENT.exists():
            subprocess.run(["bash", "lab/environment.sh"], check=True)
            self.environment = environment(os.environ)
            self._program = shutil.which("pulumi", path=self.environment.get("PATH"))

    def run(
        self, *words: str, extra: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run the engine on this stack to its end. Raises StackError when there is none here."""
        return subprocess.run(
            self._command(words),
            env={**self.environment, **(extra or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    def start(
        self, *words: str, extra: Mapping[str, str], output: IO[bytes]
    ) -> subprocess.Popen[bytes]:
        """The engine on this stack as a child in a process group of its own. Raises StackError."""
        return subprocess.Popen(
            self._command(words),
            # Else it does not know --event-log.
            env={**self.environment, **extra, "PULUMI_DEBUG_COMMANDS": "true"},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            process_group=0,
        )

    def become(self, *words: str, extra: Mapping[str, str]) -> None:
        """Let the engine take the place of this process. Raises StackError.

        So it gets every signal itself: a parent that is interrupted would kill it within the
        second, and with it what it knows of commands that run.
        """
        command = self._command(words)
        os.execve(command[0], command, {**self.environment, **extra})  # noqa: S606 (no shell is meant)

    def _ask(self, *words: str) -> object:
        """What `pulumi stack` answers; None without an engine or a stack of that name."""
        if self._program is None:
            return None
        done = self.run("stack", *words)
        if done.returncode == 0:
            answer: object = json.loads(done.stdout)
            return answer
        if _NO_STACK in done.stderr:
            return None
        said = done.stderr.strip().splitlines()
        raise StackError(
            f"stack {self.stack} cannot be read: {said[-1] if said else 'no reason given'}\n"
            f"  do: fix that, then see that this works: pulumi stack --stack {self.stack}"
        )

    def _command(self, words: tuple[str, ...]) -> list[str]:
        if self._program is None:
            raise StackError("there is no pulumi here\n  do: make engine")
        return [self._program, *words, "--stack", self.stack, "--non-interactive"]


def environment(given: Mapping[str, str]) -> dict[str, str]:
    """The engine's environment: `given` where it names a backend, else that of .env.

    Programs and plugins are those of this checkout in both cases.
    """
    if _names_backend(given):
        return _with_programs(_without_empty(given))
    if not _ENVIRONMENT.exists():
        return dict(given)
    done = subprocess.run(
        ["bash", "-c", f"source ./{_ENVIRONMENT} && env -0"],
        env=dict(given),
        stdout=subprocess.PIPE,
        check=True,
    )
    pairs = (line.partition("=") for line in done.stdout.decode().split("\0") if line)
    return {key: value for key, _, value in pairs}


def _names_backend(given: Mapping[str, str]) -> bool:
    return bool(given.get("PULUMI_BACKEND_URL") or given.get("PULUMI_ACCESS_TOKEN"))


def _without_empty(given: Mapping[str, str]) -> dict[str, str]:
    """Without the empty PULUMI_ variables, as CI systems hand over secrets that do not exist.

    An empty passphrase is one too, but not beside a file that holds another.
    """
    kept = {} if given.get("PULUMI_CONFIG_PASSPHRASE_FILE") else {"PULUMI_CONFIG_PASSPHRASE"}
    return {
        key: value
        for key, value in given.items()
        if value or key in kept or not key.startswith("PULUMI_")
    }


def _with_programs(given: dict[str, str]) -> dict[str, str]:
    here = Path.cwd()
    folders = [str(here / _LOCAL / "bin"), str(here / ".venv/bin"), given.get("PATH", os.defpath)]
    pinned = {
        # Where the pinned plugins are installed: the engine must not fetch others.
        "PULUMI_HOME": str(here / _LOCAL / "pulumi"),
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
    }
    usual = {} if "PULUMI_HOME" in given else pinned
    return {**usual, **given, "PATH": os.pathsep.join(folders)}
