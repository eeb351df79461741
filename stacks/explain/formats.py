"""The plan and its problems in words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from stacks.cluster import api_record
from stacks.cluster.names import spoken
from stacks.cluster.plan import Node, Plan
from stacks.config import redaction
from stacks.config.fields import ZONE_LABEL
from stacks.explain import markdown

_SHOWN = 10  # problems of one kind
_ROWS = 8  # groups of nodes
_NUMBER = re.compile(r"[0-9]+")
_VALUE = re.compile(r"""'[^']*'|"[^"]*"|`[^`]*`""")


def plan(plan: Plan, *, verbose: bool = True) -> str:
    """The cluster, then a line for each node; `verbose` off: for each group of equal ones."""
    spec, sets = plan.spec, plan.versions
    topology = "on the masters" if plan.etcd_stacked else "on machines of its own"
    lines = [
        f"cluster {spec.cluster.name}: Kubernetes {sets.kubernetes}, etcd {sets.etcd} {topology}, "
        f"containerd {sets.containerd}, network {spec.network.plugin}",
        f"pods {spec.cluster.pod_cidr}, services {spec.cluster.service_cidr}, "
        f"DNS {plan.dns_service_ip}, API outside {plan.endpoint}",
        *([_records(plan)] if spec.front_doors.dns != "none" else []),
        f"artefacts from {plan.mirror.url if plan.mirror else 'upstream'}",
        f"{size(plan)}:",
    ]
    rows = [_row(node) for node in plan.nodes] if verbose else _grouped(plan)
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]) - 1)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        lines.append("  " + "  ".join([*cells, row[-1]]).rstrip())
    return "\n".join(lines) + "\n"


def _grouped(plan: Plan) -> list[tuple[str, ...]]:
    """Nodes of a pool as one row, but for those with labels or taints of their own."""
    groups: dict[tuple[str, ...], list[Node]] = {}
    for node in plan.nodes:
        marks = [f"{key}={value}" for key, value in node.labels if key != ZONE_LABEL]
        marks += [f"{taint.key}={taint.value}:{taint.effect}" for taint in node.taints]
        key = (node.pool, "+".join(node.roles), node.arch, " ".join(marks))
        groups.setdefault(key, []).append(node)
    rows = [
        (spoken(node.name for node in nodes), roles, _addresses(nodes), arch, _zones(nodes, marks))
        for (_, roles, arch, marks), nodes in [*groups.items()][:_ROWS]
    ]
    rest = sum(len(nodes) for nodes in [*groups.values()][_ROWS:])
    return [*rows, *([(f"and {rest} more", "", "", "", "")] if rest else [])]


def _addresses(nodes: Sequence[Node]) -> str:
    first, last = nodes[0].address, nodes[-1].address
    return first if len(nodes) == 1 else f"{first} to {last}"


def _zones(nodes: Sequence[Node], marks: str) -> str:
    zones = sorted({node.zone for node in nodes if node.zone})
    text = f"zone{'s' if len(zones) > 1 else ''} {', '.join(zones)}" if zones else ""
    return "  ".join(part for part in (text, marks) if part)


def _records(plan: Plan) -> str:
    name = plan.endpoint.rpartition(":")[0]
    if api_record.zone(plan.spec) is not None:
        return f"record of type A that the stack makes: {name} -> {api_record.words(plan)}"
    return f"records of type A that you make: {name} -> {', '.join(plan.door_addresses)}"


def size(plan: Plan) -> str:
    """How many nodes there are of each role."""
    counts = (
        (len(plan.masters), "master"),
        (len(plan.etcd), "etcd member"),
        (len(plan.workers), "worker"),
    )
    balancers = len(plan.load_balancers)
    listed = [*counts, *([(balancers, "load balancer")] if balancers else [])]
    return ", ".join(f"{count} {role}{'' if count == 1 else 's'}" for count, role in listed)


def _row(node: Node) -> tuple[str, ...]:
    ssh = node.ssh
    access = f"{ssh.user}@{ssh.address}:{ssh.port}" if ssh else node.address
    if ssh and ssh.address != node.address:
        access = f"{node.address} ({access})"
    extra = [f"{key}={value}" for key, value in node.labels]
    if node.zone and not node.zone_label:
        extra.append(f"zone={node.zone}")  # no Kubernetes node has it as a label
    extra += [f"{taint.key}={taint.value}:{taint.effect}" for taint in node.taints]
    return (node.name, "+".join(node.roles), access, node.arch, " ".join(extra))


def problems(where: str, found: Sequence[tuple[str, str]]) -> str:
    """Every problem on a line of its own, below a line that counts them."""
    lines = [f"{where}: {_count(found)}, nothing was touched", *map(_line, _summed(found))]
    return redaction.without("\n".join(lines) + "\n")


def problems_markdown(where: str, found: Sequence[tuple[str, str]]) -> str:
    """The same for a comment in a pull request."""
    lines = [f"**{markdown.escaped(where)} is refused: {_count(found)}. Nothing is touched.**", ""]
    for path, words in _summed(found):
        text = markdown.escaped(redaction.without(words))
        lines.append(f"- {markdown.code(path)}: {text}" if path else f"- {text}")
    return "\n".join(lines) + "\n"


def warnings(found: Sequence[tuple[str, str]]) -> str:
    """Every warning on a line of its own; empty without any."""
    lines = [f"warning: {path}: {words}\n" for path, words in _summed(found)]
    return redaction.without("".join(lines))


def _count(found: Sequence[object]) -> str:
    return "1 problem" if len(found) == 1 else f"{len(found)} problems"


def _line(problem: tuple[str, str]) -> str:
    path, words = problem
    return f"  {path}: {words}" if path else f"  {words}"


def _summed(found: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Of problems that differ in numbers and values alone the first few, and how many more."""
    kinds = [_kind(*problem) for problem in found]
    counts, seen, out = Counter(kinds), Counter[tuple[str, str]](), []
    for problem, kind in zip(found, kinds, strict=True):
        seen[kind] += 1
        rest = counts[kind] - _SHOWN
        if rest <= 1 or seen[kind] <= _SHOWN:
            out.append(problem)
        elif seen[kind] == counts[kind]:
            out.append((problem[0], f"and {rest} more of this kind, of which this is the last"))
    return out


def _kind(path: str, words: str) -> tuple[str, str]:
    return _NUMBER.sub("#", path), _NUMBER.sub("#", _VALUE.sub("#", words))
