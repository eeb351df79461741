"""Which machine has to reach which port of which other: tried both ways, and what came of it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from stacks.cluster import firewall
from stacks.cluster.names import spoken
from stacks.cluster.plan import Node, Plan
from stacks.providers.site import Rule

_PROGRAM = Path(__file__).with_name("prove.pl")
SECONDS_MOST = 15  # of listening; all of a batch begin within a login of each other
WORKERS = 16  # of a batch, beside all machines of the control plane
_NEXT = 2  # workers of its batch that each one dials
BOUND = (
    "each machine with every master, etcd member and load balancer, both ways; "
    f"each worker with the next {_NEXT} of {WORKERS}"
)
_LINE = re.compile(r"^(bound|taken|heard|dialled) ((?:tcp|udp|vrrp) \d+)(?: (\S+) (.*))?$")


class Probe(NamedTuple):
    """One way that has to be open."""

    source: Node
    target: Node
    door: str  # protocol and port, as `tcp 6443`
    what: str  # name of the rule that asks for it


@dataclass(frozen=True, slots=True)
class Report:
    """What one machine told."""

    taken: set[str] = field(default_factory=set)  # doors that something else listens at
    heard: dict[tuple[str, str], set[str]] = field(default_factory=dict)  # (door, who) -> sources
    dialled: dict[tuple[str, str], str] = field(default_factory=dict)  # (door, whom) -> answer
    ended: bool = False


def batches(plan: Plan) -> list[list[Probe]]:
    """Ways that are tried at the same time; each machine is in one at least, in each direction.

    Of control plane and load balancers with every machine: all. Between workers, of whom there may
    be thousands: see BOUND.
    """
    control = [node for node in plan.nodes if not node.is_worker]
    workers = [node for node in plan.nodes if node.is_worker]
    parts = max(1, -(-len(workers) // WORKERS))
    cut = [workers[first::parts] for first in range(parts)]  # none is left with a single worker
    return [
        [*_probes(plan, _pairs(control, part, first=index == 0))] for index, part in enumerate(cut)
    ]


def _pairs(
    control: Sequence[Node], workers: Sequence[Node], *, first: bool
) -> Iterator[tuple[Node, Node]]:
    if first:  # of the others' batches it would be the same
        yield from ((one, other) for one in control for other in control if one is not other)
    for one in control:
        for other in workers:
            yield one, other
            yield other, one
    for index, one in enumerate(workers):
        for step in range(1, min(_NEXT, len(workers) - 1) + 1):
            yield one, workers[(index + step) % len(workers)]


def _probes(plan: Plan, pairs: Iterable[tuple[Node, Node]]) -> Iterator[Probe]:
    rules = [*firewall.between_machines(plan)]
    for source, target in pairs:
        has, of = (set(firewall.groups(node.roles)) for node in (target, source))
        found = {
            door: rule.name
            for rule in reversed(rules)
            if rule.to in has and of & set(rule.groups)
            for door in _doors(rule)
        }
        yield from (Probe(source, target, door, what) for door, what in sorted(found.items()))


def _doors(rule: Rule) -> Iterator[str]:
    """Of a range of many ports the first one. SSH and pings are the preflight phase's own."""
    if rule.protocol == "vrrp":
        yield "vrrp 0"
    if rule.ports is not None and rule.name != firewall.SSH_PEERS:
        first, last = rule.ports
        ports = (first, last) if last - first == 1 else (first,)
        yield from (f"{rule.protocol} {port}" for port in dict.fromkeys(ports))


def script(node: Node, probes: Iterable[Probe]) -> str:
    """Bash that does the node's part of them."""
    out = [probe for probe in probes if probe.source is node]
    into = [probe for probe in probes if probe.target is node]
    values = {
        "NAME": node.name,
        "ADDRESS": node.address,
        "SECONDS_MOST": str(SECONDS_MOST),
        "LISTEN": "\n".join(sorted({probe.door for probe in into})),
        "DIAL": "\n".join(f"{p.door} {p.target.address} {p.target.name}" for p in out),
        "EXPECT": "\n".join(f"{p.door} {p.source.name}" for p in into),
    }
    said = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in values.items())
    return f"{said}exec perl -e {shlex.quote(_PROGRAM.read_text())} </dev/null 2>&1\n"


def read(text: str) -> Report:
    """What a machine printed; lines of other forms count as nothing."""
    found = Report(ended=text.strip().splitlines()[-1:] == ["end"])
    for line in text.splitlines():
        if not (match := _LINE.match(line)):
            continue
        kind, door, who, rest = match.groups()
        if kind == "taken":
            found.taken.add(door)
        elif kind == "heard" and who:
            found.heard.setdefault((door, who), set()).add(rest)
        elif kind == "dialled" and who:
            found.dialled[door, who] = rest
    return found


def problems(probes: Iterable[Probe], reports: Mapping[str, Report]) -> dict[str, list[str]]:
    """By the name of the machine that is to be reached; equal ones of many sources as one."""
    closed: dict[tuple[str, str, str, str], list[str]] = {}
    strange: dict[tuple[str, str, str], list[str]] = {}
    for probe in probes:
        source, target = (reports.get(one.name) for one in (probe.source, probe.target))
        if source is None or target is None or not (source.ended and target.ended):
            continue  # said of that machine
        if reason := _reason(probe, source, target):
            key = (probe.target.name, probe.door, probe.what, reason)
            closed.setdefault(key, []).append(probe.source.name)
        for seen in target.heard.get((probe.door, probe.source.name), set()):
            if seen != probe.source.address:
                key_ = (probe.target.name, probe.source.name, seen)
                strange.setdefault(key_, []).append(_spoken(probe.door))
    out: dict[str, list[str]] = {}
    for (target_, door, what, reason), sources in closed.items():
        text = f"{_spoken(door)} ({what}) is not reached from {spoken(dict.fromkeys(sources))}"
        way = f"open it for them in the firewalls of {target_} and between"
        out.setdefault(target_, []).append(f"{text}: {reason}\n    do: {way}")
    for (target_, source_, seen), doors in strange.items():
        text = f"what {source_} sends ({', '.join(dict.fromkeys(doors))}) arrives from {seen}"
        way = "machines have to see each other by the addresses in the config: no NAT between them"
        out.setdefault(target_, []).append(f"{text}, not from its address\n    do: {way}")
    return out


def _reason(probe: Probe, source: Report, target: Report) -> str:
    """Why a way does not count as open; empty: it does."""
    if not probe.door.startswith("tcp "):
        # Who has it already does not answer us: what runs there is the network's own.
        if probe.door in target.taken or (probe.door, probe.source.name) in target.heard:
            return ""
        return "nothing arrives"
    answer = source.dialled.get((probe.door, probe.target.name), "no: not tried")
    if answer.startswith("no: "):
        return answer.removeprefix("no: ")
    # A Service of type NodePort answers before who listens there.
    may_be_other = probe.door in target.taken or probe.what == firewall.NODE_PORTS
    if answer == probe.target.name or (answer == "-" and may_be_other):
        return ""
    return "another program answers for it" if answer == "-" else f"{answer} answers for it"


def _spoken(door: str) -> str:
    protocol, _, port = door.partition(" ")
    return "VRRP, protocol 112" if protocol == "vrrp" else f"port {port}/{protocol}"
