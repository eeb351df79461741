"""Asks every machine of a stack what is on it, in parallel, and one master about the cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from operations.engine.stack import Stack
from operations.observe import addons, answers, expected, facts, kubeconfig
from operations.observe.answers import UnreadableAnswerError
from operations.observe.expected import FIREWALL, Expected
from operations.observe.facts import Certificate
from operations.observe.hints import Difference
from operations.ssh import client
from operations.ssh.client import Answer
from stacks.cluster import artifacts
from stacks.cluster.artifacts import ArtifactError, File
from stacks.cluster.plan import Node

_LIMIT_S = 90  # for all questions to one machine
_AT_ONCE = 16  # machines asked in parallel


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What one machine answered."""

    machine: facts.Machine | None
    trouble: str  # why there are no facts
    is_reached: bool
    is_made: bool = True  # the stack has such a machine
    is_absent: bool = False  # by the config: it was not asked
    skew_s: float = 0.0  # its clock beside this computer's, as far as the way there cannot explain


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    machines: Mapping[str, Found]  # by node name, every node of the plan
    expected: Mapping[str, Expected]
    cluster: facts.Cluster | None
    trouble: str  # why nobody told about the cluster
    notes: tuple[str, ...] = ()  # what could not be compared
    administrator: Certificate | None = None  # of the kubeconfig that the stack gives out
    addons: tuple[Difference, ...] = ()  # objects of theirs that are not as wanted


def ask(stack: Stack, *, root: Path | None = None) -> Findings:
    """Probe the whole stack. `root` is where a bundle's manifest is looked for, as in artifacts."""
    plan = stack.plan
    files, notes = _artefacts(stack, root)
    ca = kubeconfig.authority(stack.kubeconfig)
    wanted = {
        node.name: expected.of(
            plan, node, files=files.get(node.arch, {}), ca=ca, cluster_id=stack.cluster_id
        )
        for node in plan.nodes
    }
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        answers = pool.map(lambda node: _machine(stack, node, wanted[node.name]), plan.nodes)
        found = dict(zip(wanted, answers, strict=True))
    serving = _serving(stack, found)
    cluster, trouble = _cluster(stack, serving)
    changed, not_compared = addons.ask(stack, serving) if cluster else ((), ())
    return Findings(
        machines=found,
        expected=wanted,
        cluster=cluster,
        trouble=trouble,
        notes=(*notes, *not_compared),
        addons=changed,
        administrator=kubeconfig.administrator(stack.kubeconfig),
    )


def _artefacts(stack: Stack, root: Path | None) -> tuple[dict[str, dict[str, File]], list[str]]:
    """Files by architecture and name; without them their sums are not compared, which is told."""
    try:
        arches = sorted({node.arch for node in stack.plan.nodes})
        return {arch: artifacts.files(stack.plan, arch, root=root) for arch in arches}, []
    except ArtifactError as error:
        return {}, [f"checksums of downloads are not compared: {error}"]


def _machine(stack: Stack, node: Node, wanted: Expected) -> Found:
    if node.is_absent:
        return Found(machine=None, trouble="is absent", is_reached=False, is_absent=True)
    if node.name not in stack.targets:
        return Found(machine=None, trouble="is not made yet", is_reached=False, is_made=False)
    answer = _run(stack, node, values(node, wanted))
    if not answer.reached:
        return Found(machine=None, trouble=answer.last_line, is_reached=False)
    try:
        told = answers.machine(answer.text)
    except UnreadableAnswerError as error:
        return Found(machine=None, trouble=str(error), is_reached=True)
    return Found(machine=told, trouble="", is_reached=True, skew_s=skew_s(told.clock_s, answer))


def values(node: Node, wanted: Expected) -> dict[str, str]:
    """Values of the probe phase on one machine."""
    ask = ["machine"]
    ask += ["balancer"] if node.in_kubernetes or node.is_load_balancer else []
    ask += ["master"] if node.is_master else []
    ask += ["member"] if node.is_etcd else []
    ask += ["vip"] if wanted.vip else []
    ask += ["firewall"] if FIREWALL in wanted.units else []
    return {
        "ASK": " ".join(ask),
        "ADDRESS": node.address,
        "VIP": wanted.vip,
        "FILES": "\n".join(wanted.files),
        "CERTIFICATES": "\n".join(wanted.certificates),
        "UNITS": " ".join(wanted.units),
        "PROGRAMS": " ".join(wanted.programs),
        "ARTEFACTS": " ".join(wanted.artefacts),
        "SETTLED": " ".join(wanted.settled),
        "SCRIPTS": " ".join(wanted.scripts),
    }


def _serving(stack: Stack, found: Mapping[str, Found]) -> list[Node]:
    """Masters that can be reached, those with a ready API server first."""
    reached = [node for node in stack.plan.masters if found[node.name].is_reached]
    return sorted(reached, key=lambda node: not _serves(found[node.name]))


def _cluster(stack: Stack, masters: Sequence[Node]) -> tuple[facts.Cluster | None, str]:
    """The cluster by the first of these masters that tells."""
    troubles = []
    for node in masters:
        answer = _run(stack, node, {"ASK": "cluster"})
        try:
            return answers.cluster(answer.text), ""
        except UnreadableAnswerError as error:
            troubles.append(f"{node.name}: {error}")
    return None, "; ".join(troubles) or "no master can be reached over SSH"


def _serves(found: Found) -> bool:
    return found.machine is not None and found.machine.readyz == "ok"


def _run(stack: Stack, node: Node, values: Mapping[str, str]) -> Answer:
    told = {**stack.identity(node), **values}
    return client.run(stack.targets[node.name], "probe", told, limit_s=_LIMIT_S)


def skew_s(clock_s: float, answer: Answer) -> float:
    """Seconds that a machine's clock lies outside of the time in which it was asked."""
    over = clock_s - (answer.asked_at_s + answer.took_s)
    return over if over > 0 else min(0.0, clock_s - answer.asked_at_s)
