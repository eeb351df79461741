"""Which line of the change plan tells of a step: the phase that it names, and the node."""

from __future__ import annotations

from collections.abc import Iterable

from stacks.order.difference import Difference
from stacks.order.step import Part, Step
from stacks.phases import scripts

# Done from one machine for all that they are about.
_FOR_ALL = {"retire": "first", "nodes": "nodes"}
_OF_CLUSTER = frozenset(scripts.CLUSTER_PHASES) - {"etcd-absent"}


def phase(step: Step) -> str:
    """The phase that the plan names: copies and keys are told with what they are for."""
    if step.part == "stopped" and step.phase != "etcd-absent":
        return "decommission"
    if step.phase in _FOR_ALL:
        return _FOR_ALL[step.phase]
    if step.part == "virtual IP" and step.phase == "addon":
        return "vip-holders"
    if step.phase == "pki":
        return _of_keys(step)
    if step.kind == "scripts" or step.phase == "preflight":
        return "node"
    return step.phase or step.kind


def _of_keys(step: Step) -> str:
    if step.part in ("leafs", "load balancers"):
        return "pki"
    if step.part in ("new machines", "ingress"):
        return "node" if step.part == "new machines" else "ingress"
    return "etcd-member" if step.parent.endswith("-etcd") else "master"


def node(step: Step) -> str:
    """On whose machine it is told; empty: it is about the cluster, or about several nodes."""
    return "" if step.node is None or step.phase in _OF_CLUSTER else step.node.name


def parts(differences: Iterable[Difference]) -> dict[tuple[str, str], Part]:
    """By phase and node, the part in which it is told: that of what happens, not of a copy."""
    found: dict[tuple[str, str], Part] = {}
    for one in sorted(differences, key=lambda one: (one.mark != "-", one.happens)):
        if one.step.part and one.step.kind not in ("attempt", "forget"):
            found[phase(one.step), node(one.step)] = one.step.part
    return found
