"""What a cluster has to be before upstream's tests change it, and what they leave."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from operations.engine.engine import StackError
from operations.engine.kubectl import Kubectl
from stacks.cluster.plan import Plan

# By upstream's framework on each namespace that it makes.
MADE_BY_A_TEST = "e2e-run"
# Namespaces that every cluster has, or that this product makes.
_USUAL = ("default", "kube-")
_GONE_S = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """As it was just before the run."""

    unready: tuple[str, ...]  # nodes
    foreign: tuple[str, ...]  # namespaces with pods of somebody

    @property
    def risk(self) -> str:
        """What a person has to know before the run."""
        lines = [
            "Upstream's tests make namespaces and remove them, taint nodes, and evict and preempt "
            "pods on them: this is for a cluster without users."
        ]
        if self.foreign:
            lines.append(f"WARNING pods of somebody run in: {', '.join(self.foreign)}")
        if self.unready:
            lines.append(f"WARNING not Ready, and left out: {', '.join(self.unready)}")
        return "\n".join(lines)


def see(kubectl: Kubectl, plan: Plan) -> Cluster:
    """Raises StackError where what answers is not the cluster of this plan, or is between two."""
    version = json.loads(kubectl.text("get", "--raw", "/version"))["gitVersion"]
    wanted = f"v{plan.spec.cluster.kubernetes}"
    if version != wanted:
        raise StackError(
            f"the API server is {version}, and the config says {wanted}\n"
            "  do: make up, then again; tests of another version judge another version"
        )
    nodes = {_name(node): node for node in kubectl.items("nodes")}
    known = {node.name for node in (*plan.nodes, *plan.away)}
    if strange := sorted(nodes.keys() - known):
        raise StackError(
            f"the cluster has nodes that the stack does not: {', '.join(strange)}\n"
            "  do: see whose cluster answers there (make drift); the tests change it"
        )
    unready = tuple(sorted(name for name, node in nodes.items() if not _is_ready(node)))
    if len(unready) == len(nodes):
        raise StackError("no node is Ready\n  do: make status")
    pods = kubectl.items("pods", "--all-namespaces")
    spaces = {_text(_mapping(pod.get("metadata")), "namespace") for pod in pods}
    foreign = sorted(space for space in spaces if not space.startswith(_USUAL))
    return Cluster(unready=unready, foreign=tuple(foreign))


def namespaces(kubectl: Kubectl) -> frozenset[str]:
    """Those that upstream's tests made."""
    return frozenset(map(_name, kubectl.items("namespaces", "--selector", MADE_BY_A_TEST)))


def clear(kubectl: Kubectl, before: frozenset[str]) -> list[str]:
    """Remove namespaces of this run that an interruption left; those that do not go."""
    left = sorted(namespaces(kubectl) - before)
    if not left:
        return []
    words = ("delete", "namespaces", *left, f"--timeout={_GONE_S}s")
    try:
        kubectl.text(*words, limit_s=_GONE_S + 30)
    except StackError:
        return sorted(namespaces(kubectl) - before)
    return []


def _is_ready(node: Mapping[str, object]) -> bool:
    conditions = _mapping(node.get("status")).get("conditions")
    found = [_mapping(one) for one in conditions] if isinstance(conditions, list) else []
    return any(one.get("type") == "Ready" and one.get("status") == "True" for one in found)


def _name(thing: Mapping[str, object]) -> str:
    return _text(_mapping(thing.get("metadata")), "name")


def _text(found: Mapping[str, object], key: str) -> str:
    return str(found.get(key) or "")


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}
