"""`python -m operations.drift STACK`: what differs between the plan and the machines.

Changes nothing. Exit codes: 0 all is as planned, 1 something differs, 2 could not look.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

from operations.observe import observation
from operations.observe.differences import Report
from operations.observe.hints import Difference
from operations.observe.observation import Look
from stacks.cluster.plan import Node

ABSENT = "absent by the config, not asked"
_SHOWN = 5  # edits that were not applied yet; more are counted


def main(arguments: list[str]) -> int:
    """Print a table of all machines and what differs on each, or the same as JSON."""
    return observation.tell(
        arguments,
        name="drift",
        about=__doc__,
        document=document,
        lines=lambda seen: [*head(seen), *table(seen.plan.nodes, seen.report)],
        code=code,
    )


def code(seen: Look) -> int:
    """The exit code: without a word of the cluster itself nobody has looked."""
    if seen.findings.cluster is None:
        return 2
    return 1 if seen.report.count else 0


def head(seen: Look) -> list[str]:
    """What to know before the table: edits that are not applied, what was not compared."""
    edits, lines = seen.not_applied, []
    if edits:
        more = [f"and {len(edits) - _SHOWN} more"] if len(edits) > _SHOWN else []
        lines.append(
            f"not applied yet, so the machines cannot be as Pulumi.{seen.stack}.yaml says:"
        )
        lines += [f"  - {edit}" for edit in [*edits[:_SHOWN], *more]]
        lines.append(f"    do: pulumi up --stack {seen.stack}")
    return lines + [f"note: {note}" for note in seen.findings.notes]


def table(nodes: Sequence[Node], report: Report) -> list[str]:
    """One line a machine and one for the cluster, what differs below."""
    width = max(len("cluster"), *(len(node.name) for node in nodes))
    lines = []
    for node in nodes:
        found = report.nodes[node.name]
        said = ABSENT if node.is_absent else verdict(found)
        lines.append(f"{node.name.ljust(width)}  {node.address.ljust(15)}  {said}")
        lines += _listed(found)
    lines.append(f"{'cluster'.ljust(width)}  {' ' * 15}  {verdict(report.cluster)}")
    lines += _listed(report.cluster)
    bad = sum(1 for found in report.nodes.values() if found)
    if bad:
        lines.append(f"{bad} of {len(nodes)} machines are not as planned")
    elif not report.cluster:
        lines.append("everything is as planned")
    return lines


def verdict(found: Sequence[Difference]) -> str:
    """ok, unreachable, or how many differences."""
    if not found:
        return "ok"
    if found[0].kind in ("unreachable", "unreadable", "not-made"):
        return found[0].kind.replace("-", " ")
    return "1 difference" if len(found) == 1 else f"{len(found)} differences"


def _listed(found: Sequence[Difference]) -> list[str]:
    return [line for one in found for line in (f"  - {one.text}", f"    do: {one.do}")]


def document(seen: Look) -> dict[str, object]:
    """The same for programs: keys as documented in docs/operate/drift.md."""
    return {
        "stack": seen.stack,
        "cluster": seen.plan.spec.cluster.name,
        "exitCode": code(seen),
        "notApplied": list(seen.not_applied),
        "notes": list(seen.findings.notes),
        "nodes": {
            node.name: {
                "address": node.address,
                "pool": node.pool,
                "roles": list(node.roles),
                "verdict": ABSENT if node.is_absent else verdict(seen.report.nodes[node.name]),
                "differences": [_entry(one) for one in seen.report.nodes[node.name]],
            }
            for node in seen.plan.nodes
        },
        "clusterDifferences": [_entry(one) for one in seen.report.cluster],
    }


def _entry(one: Difference) -> Mapping[str, str]:
    return {"kind": one.kind, "subject": one.subject, "text": one.text, "do": one.do}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
