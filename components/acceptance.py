"""The last two resources of every update.

The list of nodes as wanted, and the gate that proves that the cluster works.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pulumi import ComponentResource, Output, Resource, ResourceOptions
from pulumi_command import remote

from components.remote import Identity, Machine, after, attempt, converge
from stacks import names, phases
from stacks.files import acceptance as manifest
from stacks.plan import ETCD_CLIENT_PORT, Node, Plan

_STALL_S = 240  # a worker on a slow line needs about two minutes from its first byte to Ready
_IDLE_S = 90  # a machine that is reached begins at once; a retry clears the last failure then
_REACH = 5  # neighbours that each node's pod dials; all pairs up to six nodes


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptanceArgs:
    plan: Plan
    machine: Machine  # a master
    identity: Identity
    applied: Mapping[str, Output[str]]  # by node name: what it announces when it is as wanted
    after: Sequence[Resource]


class Acceptance(ComponentResource):
    """Resources `<cluster>-nodes` and `<cluster>-gate`.

    Neither depends on the nodes: they ask the cluster.
    """

    gate: remote.Command

    def __init__(
        self, name: str, args: AcceptanceArgs, opts: ResourceOptions | None = None
    ) -> None:
        super().__init__("kube-ha:index:Acceptance", name, None, opts)
        plan = args.plan
        network = "1" if plan.spec.network.plugin != "none" else "0"
        # Reverting a change that broke off must undo what the list of nodes has done of it, and
        # prove the cluster again.
        stamp = attempt(
            f"{plan.spec.cluster.name}-acceptance-attempt",
            wanted=phases.digest(
                phases.script_sum("nodes"), phases.script_sum("gate"), plan_digest(plan)
            ),
            opts=ResourceOptions(parent=self),
        )
        nodes = converge(
            f"{plan.spec.cluster.name}-nodes",
            args.machine,
            "nodes",
            {
                "WANTED": _wanted(plan, args.applied),
                "LABELS": _lines(plan, _labels),
                "TAINTS": _lines(plan, _taints),
                "MEMBERS": " ".join(f"{node.name}={node.address}" for node in plan.etcd),
                "ETCD_ENDPOINTS": _etcd_endpoints(plan),
                "STALL_S": str(_STALL_S),
                "IDLE_S": str(_IDLE_S),
                "NETWORK": network,
                "PLAN": plan_digest(plan),
            },
            identity=args.identity,
            stamp=stamp,
            opts=after(*args.after, parent=self),
        )
        self.gate = converge(
            f"{plan.spec.cluster.name}-gate",
            args.machine,
            "gate",
            gate_values(plan) | {"APPLIED": _wanted(plan, args.applied)},
            identity=args.identity,
            stamp=stamp,
            opts=after(nodes, parent=self),
        )
        self.register_outputs({})


def gate_values(plan: Plan) -> dict[str, str]:
    """Values of the gate phase; `make verify` runs it with the same ones."""
    network = plan.spec.network.plugin != "none"
    rollouts = ["kube-system/deployment/coredns", "kube-system/daemonset/kube-proxy"]
    if plan.spec.network.plugin == "flannel":
        rollouts.append("kube-flannel/daemonset/flannel")
    return {
        "PLAN": plan_digest(plan),
        "NODES": str(sum(1 for node in plan.nodes if node.in_kubernetes)),
        "MANIFEST": manifest.acceptance(plan).rstrip("\n"),
        "NETWORK": "1" if network else "0",
        "NAMESPACE": manifest.NAMESPACE,
        "NAME": manifest.NAME,
        "PORT": str(manifest.PORT),
        "DNS_DOMAIN": plan.spec.cluster.dns_domain,
        "REACH": str(_REACH),
        "DEPLOYMENTS": " ".join(rollouts),
    }


def plan_digest(plan: Plan) -> str:
    """Hash of everything wanted: every change has to pass the gate before it is remembered."""
    # Of pools only what became nodes: hosts listed in another order are no change.
    settings = plan.spec.model_dump_json(by_alias=True, exclude={"pools", "nodes", "allow"})
    return phases.digest(settings, repr(plan.versions), repr(plan.nodes))


def _wanted(plan: Plan, applied: Mapping[str, Output[str]]) -> Output[str]:
    """Lines `pool hash names`.

    The nodes of a pool share a hash, so a thousand fit in a few lines.
    """
    nodes = [node for node in plan.nodes if node.in_kubernetes]

    def lines(known: Mapping[str, str]) -> str:
        groups: dict[tuple[str, str], list[str]] = {}
        for node in nodes:
            groups.setdefault((node.pool, known[node.name]), []).append(node.name)
        return "\n".join(
            f"{pool} {wanted} {names.ranges(group)}"
            for (pool, wanted), group in sorted(groups.items())
        )

    return Output.all(**{node.name: applied[node.name] for node in nodes}).apply(lines)


def _labels(node: Node) -> str:
    role = "control-plane" if node.is_master else "worker"
    granted = {
        f"node-role.kubernetes.io/{role}": "",
        **dict(node.labels),
    }
    return " ".join(f"{key}={value}" for key, value in sorted(granted.items()))


def _taints(node: Node) -> str:
    return " ".join(f"{taint.key}={taint.value}:{taint.effect}" for taint in node.taints)


def _lines(plan: Plan, words: Callable[[Node], str]) -> str:
    """Lines `names<TAB>words`, nodes with the same words together."""
    groups: dict[str, list[str]] = {}
    for node in plan.nodes:
        if node.in_kubernetes:
            groups.setdefault(words(node), []).append(node.name)
    return "\n".join(f"{names.ranges(group)}\t{text}" for text, group in sorted(groups.items()))


def _etcd_endpoints(plan: Plan) -> str:
    addresses = ["127.0.0.1"] if plan.etcd_stacked else [node.address for node in plan.etcd]
    return ",".join(f"https://{address}:{ETCD_CLIENT_PORT}" for address in addresses)
