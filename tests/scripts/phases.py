"""Runs phases in lab machines, with the very texts that the program would send there."""

from __future__ import annotations

import re
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from operations import machine
from operations.machine import Target
from operations.stack import Stack
from stacks import artifacts, desired
from stacks.phases import script_sum
from stacks.plan import Plan, plan
from stacks.spec import load
from tests.e2e import config, lab
from tests.e2e.machines import Machines
from tests.e2e.node import Node
from tests.plan.recording import Engine
from tests.plan.registration import Run
from tests.scripts.shell import SCRIPTS

LAB = "test-scripts"
SUBNET = "10.93.40.0/24"
_SEEN_S = 60  # how long a phase may take to reach the point at which it is killed


@dataclass(frozen=True, slots=True)
class Phases:
    """Machines of a lab, and what the program sends to them."""

    plan: Plan
    program: Run

    @classmethod
    def start(cls, folder: Path, masters: int, workers: int) -> Phases:
        """Start the machines side by side, and record the program that adopts them."""
        machines = Machines(LAB, SUBNET, folder)
        machines.start_lab()
        hosts = {
            "master": [machines.start(f"master-{n}", 10 + n) for n in range(1, masters + 1)],
            "worker": [machines.start(f"worker-{n}", 100 + n) for n in range(1, workers + 1)],
        }
        wanted = config.adopted(LAB, machines.mirror, machines.user_key, hosts)
        phases = cls(plan(load(wanted)), Engine(lab.ROOT).up(wanted))
        for name in (str(host["name"]) for pool in hosts.values() for host in pool):
            lab.engine("exec", phases.node(name).container, "mkdir", "-p", "/root/.kube-ha")
            lab.engine("cp", str(SCRIPTS), f"{phases.node(name).container}:/root/.kube-ha/")
        return phases

    def node(self, name: str) -> Node:
        return Node(LAB, name)

    def target(self, name: str) -> Target:
        """The machine as an operation reaches it, by the same config."""
        ssh = self.plan.node(name).ssh
        if ssh is None:
            raise AssertionError(name)
        return machine.of_config(ssh, self.plan.node(name).address)

    def values(self, name: str) -> dict[str, str]:
        """The values of a preflight by hand."""
        node = self.plan.node(name)
        stack = Stack(plan=self.plan, targets={}, cluster_id="")
        files = artifacts.files(self.plan, node.arch, root=lab.ROOT)
        return {**stack.identity(node), **desired.preflight(self.plan, node, files), "REPORT": "1"}

    def run(self, name: str, *, fails: bool = False) -> str:
        """Run the command `<lab>-<name>` on its machine; what it printed. Asserts that it ends well."""
        process = self._begin(name)
        out, _ = process.communicate(timeout=300)
        assert (process.returncode != 0) == fails, out
        return out

    def leave(self, node: str) -> str:
        """Run what the removal of a node runs."""
        process = self._begin(f"{node}-preflight", "delete")
        out, _ = process.communicate(timeout=300)
        assert process.returncode == 0, out
        return out

    def by_hand(self, node: str, phase: str, *words: str, fails: bool = False) -> str:
        """Run a phase that takes no values but those of every phase."""
        known = self.program.named(f"{LAB}-{node}-preflight").text("stdin").splitlines()
        identity = [
            line for line in known if re.match("(NODE|CLUSTER|CLUSTER_ID|CONTAINER)=", line)
        ]
        stdin = "\n".join([*identity, f"SCRIPT_SUM={script_sum(phase)}", "# end\n"])
        command = " ".join(["bash .kube-ha/scripts/run.sh", phase, *words])
        process = self._start(node, command, stdin)
        out, _ = process.communicate(timeout=300)
        assert (process.returncode != 0) == fails, out
        return out

    def renew(self, node: str, incarnation: int) -> str:
        """Run the node phase for another incarnation of the node."""
        process = self._begin(f"{node}-node", incarnation=incarnation)
        out, _ = process.communicate(timeout=300)
        assert process.returncode == 0, out
        return out

    def kill_when(self, name: str, seen: str, *, incarnation: int = 1) -> bool:
        """Run a command and kill all of it with SIGKILL once a bash test holds on its machine.

        False when the command ended before.
        """
        process = self._begin(name, incarnation=incarnation)
        node = self.node(_node(name))
        # Within the machine: a look from outside takes longer than many a step of a phase.
        watch = (
            f"end=$((SECONDS + {_SEEN_S})); until {seen}; do "
            "((SECONDS < end)) && pgrep -f '[r]un[.]sh' >/dev/null || exit 1; sleep 0.02; done; "
            "pkill -9 -f '[k]ube-ha/scripts/run[.]sh'"
        )
        time.sleep(0.3)  # until the command is there at all; the watch would give up
        killed = subprocess.run(
            lab.engine_command("exec", node.container, "bash", "-c", watch),
            cwd=lab.ROOT,
            capture_output=True,
            check=False,
        )
        process.communicate(timeout=120)
        return killed.returncode == 0 and process.returncode != 0

    def _begin(
        self, name: str, verb: str = "create", *, incarnation: int = 1
    ) -> subprocess.Popen[str]:
        resource = self.program.named(f"{LAB}-{name}")
        # Without sudo, which is what the connection's user needs it for.
        command = resource.text(verb).removeprefix("sudo -n ")
        anew = f"INCARNATION={incarnation}\n" if incarnation > 1 else ""
        return self._start(_node(name), command, anew + resource.text("stdin"))

    def _start(self, node: str, command: str, stdin: str) -> subprocess.Popen[str]:
        container = self.node(node).container
        process = subprocess.Popen(
            lab.engine_command("exec", "-i", "-w", "/root", container, "bash", "-c", command),
            cwd=lab.ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        if process.stdin is None:
            raise AssertionError
        process.stdin.write(stdin)
        process.stdin.close()
        process.stdin = None
        return process


def _node(name: str) -> str:
    found = re.match(r"(?:master|worker)-\d+", name)
    if found is None:
        raise AssertionError(name)
    return found[0]
