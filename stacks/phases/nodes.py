"""What phase `nodes` is told: who is wanted in the cluster, with labels, taints and state."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from stacks.cluster import names
from stacks.cluster.plan import Node, Plan
from stacks.config.ports import ETCD_CLIENT_PORT
from stacks.networks import registry
from stacks.networks.network import Marks, Member
from stacks.phases.gate import left_out, plan_digest

_STALL_S = 240  # a worker on a slow line needs about two minutes from its first byte to Ready
IDLE_S = 90  # a machine that is reached begins at once; a retry clears the last failure then


def of_nodes(plan: Plan) -> dict[str, str]:
    """Values of the nodes phase, but for WANTED, which are the lines of `wanted`."""
    marks = registry.of(plan.spec).marks(plan.spec, _members(plan))
    none = Marks()

    def labels(node: Node) -> str:
        return _labels(node, marks.get(node.name, none) if marks else none)

    def annotations(node: Node) -> str:
        return _pairs(marks.get(node.name, none).annotations)

    return {
        "WANTED": "",
        "LABELS": _lines(plan, labels),
        "TAINTS": _lines(plan, _taints),
        "MEMBERS": members(plan.etcd),
        "ETCD_ENDPOINTS": etcd_endpoints(plan, plan.etcd),
        "STALL_S": str(_STALL_S + more_s(plan)),
        "IDLE_S": str(IDLE_S),
        "NETWORK": "1" if registry.of(plan.spec).PROVED else "0",
        **left_out(plan),
        "PLAN": plan_digest(plan),
        # Of a network that writes some at times: what it wrote before has to go.
        **({"ANNOTATIONS": _lines(plan, annotations)} if marks else {}),
        **_maintenance(plan),
        # Of the user's: objects of all others that the cluster knows are deleted.
        **({"ADDONS": " ".join(addon.name for addon in plan.addons)} if plan.addons else {}),
    }


def _maintenance(plan: Plan) -> dict[str, str]:
    """Whose pods are evicted, and how; and how long those of others stay on a node that is down."""
    emptied = [node.name for node in plan.nodes if node.drain]
    kept: dict[int, list[str]] = {}
    for node in plan.nodes:
        if node.keep_pods_s:
            kept.setdefault(node.keep_pods_s, []).append(node.name)
    lines = [f"{names.ranges(group)}\t{seconds}" for seconds, group in sorted(kept.items())]
    evictions = {"EMPTIED": names.ranges(emptied), "DRAIN": drain(plan, "always")}
    return {
        **(evictions if emptied else {}),
        **({"KEPT": "\n".join(lines)} if lines else {}),
    }


def drain(plan: Plan, when: str) -> str:
    """As update.sh reads it: when, seconds, grace in seconds or `-`."""
    wanted = plan.spec.rollout.drain
    return f"{when} {wanted.timeout_s} {'-' if wanted.grace_s is None else wanted.grace_s}"


def wanted_nodes(plan: Plan) -> list[Node]:
    """Those that announce what they have become."""
    return [node for node in plan.nodes if node.in_kubernetes and not node.is_absent]


def more_s(plan: Plan) -> int:
    """How much longer nothing may seem to move where machines may reboot, or a webhook is asked."""
    wanted, hooks = plan.spec.os, plan.spec.hooks
    reboot = wanted.reboot_timeout_s if wanted.packages and wanted.reboot != "never" else 0
    return reboot + (hooks.timeout_s if hooks else 0)


def members(nodes: Iterable[Node]) -> str:
    """Words `name=address`."""
    return " ".join(f"{node.name}={node.address}" for node in nodes)


def wanted(nodes: Iterable[Node], known: Mapping[str, str]) -> str:
    """Lines `pool hash names`; `known` is what each node announces, by its name.

    The nodes of a pool share a hash, so a thousand fit in a few lines.
    """
    groups: dict[tuple[str, str], list[str]] = {}
    for node in nodes:
        groups.setdefault((node.pool, known[node.name]), []).append(node.name)
    return "\n".join(
        f"{pool} {wanted} {names.ranges(group)}" for (pool, wanted), group in sorted(groups.items())
    )


def _members(plan: Plan) -> Iterator[Member]:
    """One by one: most networks look at none."""
    for node in plan.nodes:
        if node.in_kubernetes:
            yield Member(node.name, node.pool, node.zone, node.is_master)


def _labels(node: Node, marks: Marks) -> str:
    role = "control-plane" if node.is_master else "worker"
    return _pairs({f"node-role.kubernetes.io/{role}": "", **dict(node.labels), **marks.labels})


def _pairs(words: Mapping[str, str]) -> str:
    return " ".join(f"{key}={value}" for key, value in sorted(words.items()))


def _taints(node: Node) -> str:
    return " ".join(f"{taint.key}={taint.value}:{taint.effect}" for taint in node.taints)


def _lines(plan: Plan, words: Callable[[Node], str]) -> str:
    """Lines `names<TAB>words`, nodes with the same words together."""
    groups: dict[str, list[str]] = {}
    for node in plan.nodes:
        if node.in_kubernetes:
            groups.setdefault(words(node), []).append(node.name)
    return "\n".join(f"{names.ranges(group)}\t{text}" for text, group in sorted(groups.items()))


def etcd_endpoints(plan: Plan, nodes: Iterable[Node]) -> str:
    """Client URLs of these members, as the API servers of the plan use them."""
    addresses = ["127.0.0.1"] if plan.etcd_stacked else [node.address for node in nodes]
    return ",".join(f"https://{address}:{ETCD_CLIENT_PORT}" for address in addresses)
