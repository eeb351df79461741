"""`python -m operations.preflight STACK`: every problem of every machine; changes nothing.

Each is looked at by itself, compared with the others, and tried from the others at the ports that
they need.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from operations.engine import stack
from operations.engine.engine import StackError
from operations.engine.stack import Stack
from operations.ports import matrix
from operations.ports.matrix import Probe
from operations.ssh import client
from operations.ssh.client import Answer
from stacks.cluster import artifacts
from stacks.cluster.artifacts import ArtifactError
from stacks.cluster.names import spoken
from stacks.cluster.plan import Node
from stacks.phases import preflight

_LIMIT_S = 300
_AT_ONCE = 16  # machines asked in parallel
_SYSTEM = re.compile(r"^os (\S+ \S+)$", re.MULTILINE)
_TESTED = "debian 12"
_SKEW_S = 10  # between machines; etcd warns from 1 s, certificates break from minutes


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is compared between machines."""

    machine_id: str
    hostname: str
    clock_s: float


def main(arguments: list[str]) -> int:
    """Print a table of all machines and the problems of each; exit code 1 when there is any."""
    parser = argparse.ArgumentParser(
        prog="python -m operations.preflight",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("stack", help="name of the stack, as prod for Pulumi.prod.yaml")
    try:
        found = stack.read(parser.parse_args(arguments).stack, applied=False)
        answers = ask(found)
    except (StackError, ArtifactError) as error:
        sys.stderr.write(f"ERROR {error}\n")
        return 1
    # Whoever tells nothing about itself cannot be asked for more.
    closed = ports(found, {name for name, answer in answers.items() if facts(answer)})
    problems = {
        name: [*of_answer(answer), *between(name, answers), *closed.get(name, ())]
        for name, answer in answers.items()
    }
    print(table([node for node in found.plan.nodes if node.name in problems], problems))
    print("\n".join([*untested_systems(answers), f"ports were tried from {matrix.BOUND}"]))
    return 1 if any(problems.values()) else 0


def ask(found: Stack) -> dict[str, Answer]:
    """Run the preflight phase on every machine but absent ones. Raises ArtifactError."""
    plan = found.plan
    nodes = [node for node in plan.nodes if not node.is_absent]
    files = {
        arch: artifacts.files(plan, arch, root=Path())
        for arch in sorted({node.arch for node in plan.nodes})
    }

    def one(node: Node) -> Answer:
        values = {
            **found.identity(node),
            **preflight.preflight(plan, node, files[node.arch]),
            "REPORT": "1",
        }
        return client.run(found.targets[node.name], "preflight", values, limit_s=_LIMIT_S)

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return dict(zip([node.name for node in nodes], pool.map(one, nodes), strict=True))


def ports(found: Stack, names: Collection[str]) -> dict[str, list[str]]:
    """Problems of the ways between these machines, by the name of the one that is to be reached."""
    out: dict[str, list[str]] = {}
    for probes in matrix.batches(found.plan):
        there = [one for one in probes if {one.source.name, one.target.name} <= {*names}]
        answers = _proved(found, there)
        reports = {name: matrix.read(answer.text) for name, answer in answers.items()}
        untold = {
            name: [_untested(answers[name])] for name, one in reports.items() if not one.ended
        }
        for name, problems in (*matrix.problems(there, reports).items(), *untold.items()):
            # The control plane is in every batch.
            out.setdefault(name, []).extend(p for p in problems if p not in out.get(name, ()))
    return out


def _proved(found: Stack, probes: Sequence[Probe]) -> dict[str, Answer]:
    """What each machine of them told, all at the same time: one listens while others dial."""
    nodes = {node.name: node for one in probes for node in (one.source, one.target)}
    if not nodes:
        return {}

    def one(node: Node) -> Answer:
        text = matrix.script(node, probes)
        return client.send(found.targets[node.name], text, limit_s=_LIMIT_S)

    with ThreadPoolExecutor(len(nodes)) as pool:
        return dict(zip(nodes, pool.map(one, nodes.values()), strict=True))


def _untested(answer: Answer) -> str:
    way = "apt-get install -y perl-base where it is missing, then run this again"
    return f"ports of it were not tested: {answer.last_line}\n    do: {way}"


def untested_systems(answers: Mapping[str, Answer]) -> list[str]:
    """A line for each operating system that is accepted and that no test runs on."""
    found: dict[str, list[str]] = {}
    for name, answer in answers.items():
        if answer.status == 0 and (known := _SYSTEM.search(answer.text)):
            found.setdefault(known[1], []).append(name)
    return [
        f"{system} is expected to work and not tested: {spoken(names)}"
        for system, names in sorted(found.items())
        if system != _TESTED
    ]


def of_answer(answer: Answer) -> list[str]:
    """Problems that a machine itself reports, each with its fix on a second line."""
    if not answer.reached:
        way = "see that it runs, that address, user, key and hostKey in the config are right"
        return [f"cannot be reached over SSH: {answer.last_line}\n    do: {way}"]
    if answer.status == 0:
        return []
    listed = re.findall(r"^  - (.*\n    do: .*)$", answer.text, re.MULTILINE)
    if listed:
        return [str(problem) for problem in listed]
    return [f"the check was interrupted: {answer.last_line}\n    do: log in and run it by hand"]


def between(name: str, answers: Mapping[str, Answer]) -> list[str]:
    """Problems that only show beside the other machines: cloned ones, and clocks that differ."""
    known = {other: facts(answer) for other, answer in answers.items()}
    own = known[name]
    if own is None:
        return []
    others = {other: fact for other, fact in known.items() if fact and other != name}
    out = []
    twins = sorted(o for o, fact in others.items() if fact.machine_id == own.machine_id)
    if twins:
        way = "rm /etc/machine-id; systemd-machine-id-setup; reboot (they were cloned)"
        out.append(f"machine-id is that of {', '.join(twins)} too\n    do: {way}")
    namesakes = sorted(o for o, fact in others.items() if fact.hostname == own.hostname)
    if namesakes:
        way = f"hostnamectl set-hostname {name}"
        out.append(f"hostname {own.hostname} is that of {', '.join(namesakes)} too\n    do: {way}")
    usual = median(fact.clock_s for fact in (own, *others.values()))
    if abs(own.clock_s - usual) > _SKEW_S:
        way = "run a time service (chrony)"
        out.append(f"clock is {own.clock_s - usual:+.0f} s off the other machines\n    do: {way}")
    return out


def facts(answer: Answer) -> Facts | None:
    """What the machine tells about itself, None when it does not. The clock is an offset in s."""
    found = re.search(r"^facts (\S*) (\S*) (-?[0-9.]+)$", answer.text, re.MULTILINE)
    if found is None:
        return None
    return Facts(
        machine_id=found[1], hostname=found[2], clock_s=float(found[3]) - answer.asked_at_s
    )


def table(nodes: Sequence[Node], problems: Mapping[str, Sequence[str]]) -> str:
    """One line a machine, its problems below it."""
    width = max(len(node.name) for node in nodes)
    lines = []
    for node in nodes:
        count = len(problems[node.name])
        verdict = "ok" if not count else "1 problem" if count == 1 else f"{count} problems"
        lines.append(f"{node.name.ljust(width)}  {node.address.ljust(15)}  {verdict}")
        lines += [f"  - {problem}" for problem in problems[node.name]]
    bad = sum(1 for found in problems.values() if found)
    lines.append(
        f"{bad} of {len(nodes)} machines have problems" if bad else "all machines are ready"
    )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
