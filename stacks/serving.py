"""Serving certificates of kubelets: who signs them, and whether API servers ask for it.

Three steps, an up each: kubelets sign their own (`self-signed`), the cluster's CA signs them
(`issued`), and API servers refuse any other (`verified`). Whatever the order in which nodes change,
API servers that check meet kubelets that have one.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Address
from typing import TYPE_CHECKING

from stacks import names
from stacks.node_settings import ServingCertificates
from stacks.refusals import Refusal

if TYPE_CHECKING:
    from stacks.memory import Memory
    from stacks.plan import Node, Plan

PATH = "kubelet.servingCertificates"
_STEPS: tuple[ServingCertificates, ...] = ("self-signed", "issued", "verified")


def are_issued(plan: Plan) -> bool:
    """Whether the cluster's CA signs them."""
    return plan.spec.kubelet.serving_certificates != "self-signed"


def are_verified(plan: Plan) -> bool:
    """Whether API servers refuse a kubelet whose certificate the CA has not signed."""
    return plan.spec.kubelet.serving_certificates == "verified"


def address(plan: Plan, node: Node) -> str:
    """What the node's certificate is for besides its name; empty where the kubelet signs it."""
    return node.address if are_issued(plan) else ""


def addresses(nodes: Iterable[Node]) -> str:
    """Lines `names base+` or `name address`, for approve.sh.

    After `a-[1-3] 10.0.0.10+` a-1 has 10.0.0.11: the number at the end of a name is added. So a
    thousand machines whose names and addresses count on take few bytes.
    """
    groups: dict[tuple[str, int], list[Node]] = {}
    lines = []
    for node in nodes:
        prefix, number = names.split(node.name)
        base = int(IPv4Address(node.address)) - (number or 0)
        if number is None or base < 0:
            lines.append(f"{node.name} {node.address}")
        else:
            groups.setdefault((prefix, base), []).append(node)
    for (_, base), group in groups.items():
        if len(group) == 1:
            lines.append(f"{group[0].name} {group[0].address}")
        else:
            lines.append(f"{names.ranges(node.name for node in group)} {IPv4Address(base)}+")
    return "\n".join(sorted(lines))


def refusals(before: Memory, plan: Plan) -> list[Refusal]:
    """A step skipped: API servers would check while there are kubelets that sign their own."""
    was: ServingCertificates = "self-signed"  # all that there was when no config was remembered
    if before.plan is not None:
        was = before.plan.spec.kubelet.serving_certificates
    now = plan.spec.kubelet.serving_certificates
    if abs(_STEPS.index(now) - _STEPS.index(was)) < 2:
        return []
    text = (
        f"cannot go from {was!r} to {now!r} in one step: API servers that check would refuse "
        "kubelets that sign their own, and with them logs, exec and port-forward; set 'issued', "
        f"run up, then set {now!r}"
    )
    return [Refusal("serving-certificates", now, PATH, text)]
