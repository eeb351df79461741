"""The plan and its problems in words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from stacks.cluster import api_record
from stacks.cluster.plan import Node, Plan
from stacks.config import redaction
from stacks.explain import markdown

_SHOWN = 10  # problems of one kind
_NUMBER = re.compile(r"[0-9]+")
_VALUE = re.compile(r"""'[^']*'|"[^"]*"|`[^`]*`""")


def plan(plan: Plan) -> str:
    """The plan: cluster, then one line per node."""
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
    rows = [_row(node) for node in plan.nodes]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]) - 1)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        lines.append("  " + "  ".join([*cells, row[-1]]).rstrip())
    return "\n".join(lines) + "\n"


def _records(plan: Plan) -> str:
    name = plan.endpoint.rpartition(":")[0]
    if api_record.zone(plan.spec) is not None:
        return f"record of type A that the stack makes: {name} -> {api_record.words(plan)}"
    return f"records of type A that you make: {name} -> {', '.join(plan.door_addresses)}"


def size(plan: Plan) -> str:
    """How many nodes there are of each role."""
    balancers = len(plan.load_balancers)
    return (
        f"{len(plan.masters)} masters, {len(plan.etcd)} etcd members, {len(plan.workers)} workers"
        + (f", {balancers} load balancers" if balancers else "")
    )


def _row(node: Node) -> tuple[str, ...]:
    access = f"{node.ssh.user}@{node.address}:{node.ssh.port}" if node.ssh else node.address
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
