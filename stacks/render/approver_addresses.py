"""Names and addresses that the approver judges requests of kubelets by, in lines."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Address

from stacks.cluster import names
from stacks.cluster.plan import Node


def addresses(nodes: Iterable[Node]) -> str:
    """Lines for approve.sh, short where names and addresses count on, or lie near each other.

    `a-[1-3] 10.0.0.10+`: the number at the end of the name is added, a-1 has 10.0.0.11.
    `a-[4-6] 10.0:01070a0b0009`: what comes after 10.0, 4 hexadecimal digits each, in the order of
    the names: 10.0.1.7, 10.0.10.11, 10.0.0.9. `db 10.0.0.7`: as it stands.
    """
    runs: dict[tuple[str, int], list[Node]] = {}
    lines = []
    for node in nodes:
        prefix, number = names.split(node.name)
        base = int(IPv4Address(node.address)) - (number or 0)
        if number is None or base < 0:
            lines.append(f"{node.name} {node.address}")
        else:
            runs.setdefault((prefix, base), []).append(node)
    near: dict[tuple[str, str], list[Node]] = {}
    for (prefix, base), group in runs.items():
        if len(group) > 2:
            lines.append(f"{names.ranges(node.name for node in group)} {IPv4Address(base)}+")
            continue
        for node in group:
            near.setdefault((prefix, _half(node)), []).append(node)
    lines += [line for (_, half), group in near.items() for line in _near(half, group)]
    return "\n".join(sorted(lines))


def _half(node: Node) -> str:
    """The first half of its address: 10.0."""
    return node.address.rpartition(".")[0].rpartition(".")[0]


def _near(half: str, group: list[Node]) -> list[str]:
    if len(group) < 3:
        return [f"{node.name} {node.address}" for node in group]
    ordered = sorted(group, key=lambda node: names.split(node.name)[1] or 0)
    rest = "".join(f"{int(IPv4Address(node.address)) & 0xFFFF:04x}" for node in ordered)
    return [f"{names.ranges(node.name for node in group)} {half}:{rest}"]
