"""What an operation knows of a stack: its plan, and how its machines are reached and marked."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from operations import machine
from operations.machine import Hop, Target
from stacks import stack_file, text
from stacks.plan import Node, Plan, plan
from stacks.spec import SpecError, load
from stacks.stack_file import StackFileError

_ENVIRONMENT = Path(".env")
_NO_STACK = "no stack named"  # the engine's words; its exit codes tell no reasons


class StackError(Exception):
    """Why an operation cannot start; the text says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    plan: Plan
    targets: Mapping[str, Target]  # by node name
    cluster_id: str  # empty: the stack was never applied

    def identity(self, node: Node) -> dict[str, str]:
        """The values that every phase gets."""
        return {
            "NODE": node.name,
            "CLUSTER": self.plan.spec.cluster.name,
            "CLUSTER_ID": self.cluster_id,
            "INCARNATION": str(node.generation),
            "CONTAINER": "1" if self.plan.containers else "0",
        }


def read(name: str, *, applied: bool) -> Stack:
    """The stack of Pulumi.<name>.yaml.

    `applied`: there has to be a cluster; without it adopted machines are found by the config alone.
    Raises StackError.
    """
    wanted = _plan(Path(f"Pulumi.{name}.yaml"))
    by_config = {
        node.name: _of_config(node, wanted) for node in wanted.nodes if node.ssh is not None
    }
    engine = _Engine(name)
    outputs = engine.outputs()
    if not outputs and (applied or len(by_config) < len(wanted.nodes)):
        raise StackError(
            f"stack {name} has no outputs: it was never applied to its end\n"
            f"  do: pulumi up --stack {name}"
        )
    targets = by_config if by_config else _of_outputs(outputs.get("ssh"))
    missing = [node.name for node in wanted.nodes if node.name not in targets]
    if missing:
        raise StackError(
            f"{', '.join(missing)}: in Pulumi.{name}.yaml, but not in the stack\n"
            f"  do: pulumi up --stack {name}"
        )
    cluster_id = str(outputs.get("clusterId") or engine.cluster_id())
    return Stack(plan=wanted, targets=targets, cluster_id=cluster_id)


def _plan(file: Path) -> Plan:
    try:
        return plan(load(stack_file.read(file)))
    except StackFileError as error:
        raise StackError(f"{file}: {error}") from None
    except SpecError as error:
        raise StackError(text.problems(str(file), error.problems)) from None


def _of_config(node: Node, wanted: Plan) -> Target:
    if node.ssh is None:
        raise StackError(f"{node.name} has no connection in the config")
    try:
        return machine.of_config(node.ssh, node.address)
    except OSError as error:
        raise StackError(f"machines.ssh: key file cannot be read: {error}") from None


def _of_outputs(ssh: object) -> dict[str, Target]:
    found = ssh if isinstance(ssh, dict) else {}
    return {
        str(name): Target(
            hop=Hop(
                address=str(facts["host"]),
                port=int(facts.get("port") or 22),
                user=str(facts["user"]),
                host_key=str(facts["hostKey"]),
                key=str(facts["privateKey"]),
            )
        )
        for name, facts in found.items()
    }


class _Engine:
    """What the engine remembers of one stack; without an engine here, nothing."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._environment = _environment()
        self._program = shutil.which("pulumi", path=self._environment.get("PATH"))

    def outputs(self) -> dict[str, object]:
        """Outputs of the stack, secrets in clear; empty when it has none. Raises StackError."""
        found = self._ask("output", "--show-secrets", "--json")
        return found if isinstance(found, dict) else {}

    def cluster_id(self) -> str:
        """What machines were marked with by a first `up` that failed, and so has no outputs.

        Every phase has it among its values. Empty when none was started. Raises StackError.
        """
        stored = json.dumps(self._ask("export"))  # secrets are ciphertext there
        found = re.search(r"\\nCLUSTER_ID=([0-9a-f]+)\\n", stored)
        return found[1] if found else ""

    def _ask(self, *words: str) -> object:
        if self._program is None:
            return None
        command = [self._program, "stack", *words, "--stack", self._name, "--non-interactive"]
        done = subprocess.run(
            command,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode == 0:
            answer: object = json.loads(done.stdout)
            return answer
        if _NO_STACK in done.stderr:
            return None
        said = done.stderr.strip().splitlines()
        raise StackError(
            f"stack {self._name} cannot be read: {said[-1] if said else 'no reason given'}\n"
            f"  do: mend that, then see that this works: pulumi stack --stack {self._name}"
        )


def _environment() -> dict[str, str]:
    """This process's environment, or that of .env where the caller has not sourced one."""
    if "PULUMI_BACKEND_URL" in os.environ or not _ENVIRONMENT.exists():
        return dict(os.environ)
    done = subprocess.run(
        ["bash", "-c", f"source ./{_ENVIRONMENT} && env -0"], stdout=subprocess.PIPE, check=True
    )
    pairs = (line.partition("=") for line in done.stdout.decode().split("\0") if line)
    return {key: value for key, _, value in pairs}
