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
from stacks.problems import Problem
from stacks.refusals import Refusal

if TYPE_CHECKING:
    from stacks.inventory import Place
    from stacks.memory import Memory
    from stacks.plan import Node, Plan
    from stacks.spec import Spec

PATH = "kubelet.servingCertificates"
_LONGEST = 64 - len("system:node:")  # ub-common-name, RFC 5280 appendix A.1
_STEPS: tuple[ServingCertificates, ...] = ("self-signed", "issued", "verified")


def are_issued(plan: Plan) -> bool:
    """Whether the cluster's CA signs them."""
    return plan.spec.kubelet.serving_certificates != "self-signed"


def are_verified(plan: Plan) -> bool:
    """Whether API servers refuse a kubelet whose certificate the CA has not signed."""
    return plan.spec.kubelet.serving_certificates == "verified"


def problems(spec: Spec, places: Iterable[Place]) -> list[Problem]:
    """Names that no request can hold: OpenSSL makes some, and keeps to X.520's upper bounds."""
    if spec.kubelet.serving_certificates == "self-signed":
        return []
    long: dict[str, str] = {}  # the first name of each pool of machines that are made
    for place in places:
        in_kubernetes = {"master", "worker"} & set(spec.pools[place.pool].roles)
        if in_kubernetes and len(place.name) > _LONGEST:
            path = f"pools.{place.pool}" if place.host is None else f"{place.path}.name"
            long.setdefault(path, place.name)
    text = (
        f"characters, {_LONGEST} fit into the certificate that its kubelet serves with; take a "
        f"shorter name, or set {PATH}: self-signed"
    )
    return [Problem(path, f"{name} has {len(name)} {text}") for path, name in long.items()]


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
