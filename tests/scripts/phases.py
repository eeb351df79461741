"""Runs phases in lab machines, with the very texts that the program would send there."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from operations.engine.stack import Stack
from operations.ssh import client
from operations.ssh.client import Target
from stacks.cluster import artifacts
from stacks.cluster.plan import Plan
from stacks.cluster.resolve import plan
from stacks.load import load
from stacks.phases import preflight
from stacks.phases.scripts import script_sum
from tests.e2e.harness import config, lab
from tests.e2e.harness.machines import Machines
from tests.e2e.harness.node import Node
from tests.e2e.harness.points import HOOK, Point
from tests.plan.recording import Engine
from tests.plan.registration import Run
from tests.scripts.shell import SCRIPTS

LAB = "test-scripts"
SUBNET = "10.93.40.0/24"


@dataclass(frozen=True, slots=True)
class Phases:
    """Machines of a lab, and what the program sends to them."""

    plan: Plan
    program: Run

    @classmethod
    def start(cls, folder: Path, masters: int, workers: int) -> Phases:
        """Start the machines in parallel, and record the program that adopts them."""
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
        return client.of_config(ssh)

    def values(self, name: str) -> dict[str, str]:
        """The values of a preflight by hand."""
        node = self.plan.node(name)
        stack = Stack(plan=self.plan, targets={}, cluster_id="")
        files = artifacts.files(self.plan, node.arch, root=lab.ROOT)
        return {
            **stack.identity(node),
            **preflight.preflight(self.plan, node, files),
            "REPORT": "1",
        }

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

    def kill_at(self, name: str, condition: str, *, incarnation: int = 1) -> bool:
        """Run a command, which dies before the first of its script's commands at which a bash condition holds.

        False when the condition never held, and the command came to its end.
        """
        node = self.node(_node(name))
        phase = self.program.named(f"{LAB}-{name}").text("create").split("run.sh ")[1].split()[0]
        point = Point(node, phase, condition)
        point.set_to_die()
        process = self._begin(name, incarnation=incarnation, hook=HOOK)
        process.communicate(timeout=120)
        died = bool(point.reached()) and process.returncode != 0
        point.release()
        return died

    def _begin(
        self, name: str, verb: str = "create", *, incarnation: int = 1, hook: str = ""
    ) -> subprocess.Popen[str]:
        resource = self.program.named(f"{LAB}-{name}")
        # Without sudo, which is what the connection's user needs it for.
        command = resource.text(verb).removeprefix("sudo -n ")
        again = f"INCARNATION={incarnation}\n" if incarnation > 1 else ""
        return self._start(_node(name), command, again + resource.text("stdin"), hook=hook)

    def _start(
        self, node: str, command: str, stdin: str, *, hook: str = ""
    ) -> subprocess.Popen[str]:
        container = self.node(node).container
        options = ["-i", "-w", "/root", *(["--env", f"BASH_ENV={hook}"] if hook else [])]
        process = subprocess.Popen(
            lab.engine_command("exec", *options, container, "bash", "-c", command),
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
