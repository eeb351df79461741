"""The last two resources of every update.

The list of nodes as wanted, and the gate that proves that the cluster works.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pulumi import ComponentResource, Output, Resource, ResourceOptions

from components.access import endpoint_check
from components.cluster_wide import node_list
from components.machines.api_door import ApiDoor
from components.ssh.commands import Identity, Machine, after, attempt, converge
from stacks.cluster import api_record, clouds, digests
from stacks.cluster.plan import Plan
from stacks.phases import scripts
from stacks.phases.acceptance import plan_digest
from stacks.render import acceptance as manifest

_REACH = 5  # neighbours that each node's pod dials; all pairs up to six nodes


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptanceArgs:
    plan: Plan
    machine: Machine  # a master
    identity: Identity
    applied: Mapping[str, Output[str]]  # by node name: what it announces when it is as wanted
    after: Sequence[Resource | None]
    # What happens on machines once they are out of the list of nodes, and before the gate.
    between: Callable[[Resource], Sequence[Resource]]
    ca: Output[str]  # by which the API is known, PEM
    door: ApiDoor | None  # where the API's name leads by a record of the stack's


class Acceptance(ComponentResource):
    """Resources `<cluster>-nodes` and `<cluster>-gate`, made by `prove`.

    Neither depends on the nodes: they ask the cluster.
    """

    def __init__(self, name: str, plan: Plan, opts: ResourceOptions | None = None) -> None:
        super().__init__("kube-ha:index:Acceptance", name, None, opts)
        # Reverting a change that broke off must take out whoever has joined by it, and prove the
        # cluster again: `attempt` has to be stored before anybody joins or leaves.
        self.attempt = attempt(
            f"{plan.spec.cluster.name}-acceptance-attempt",
            wanted=digests.digest(
                scripts.script_sum("nodes"), scripts.script_sum("gate"), plan_digest(plan)
            ),
            opts=ResourceOptions(parent=self),
        )

    def prove(self, args: AcceptanceArgs) -> Output[bool]:
        """The list of nodes, then the gate. To be called once.

        Whether both have passed for this very plan; unknown where one of them has not run.
        """
        plan, wanted = args.plan, node_list.wanted(args.plan, args.applied)
        nodes = converge(
            f"{plan.spec.cluster.name}-nodes",
            args.machine,
            "nodes",
            node_list.values(plan, args.applied) | {"PLAN": plan_digest(plan), **_addons(plan)},
            identity=args.identity,
            stamp=self.attempt,
            opts=after(*args.after, parent=self),
        )
        between = args.between(nodes)
        asked = endpoint_check.ask(
            plan,
            args.door,
            ca=args.ca,
            stamp=self.attempt,
            opts=after(nodes, *between, parent=self),
        )
        gate = converge(
            f"{plan.spec.cluster.name}-gate",
            args.machine,
            "gate",
            gate_values(plan) | {"APPLIED": wanted},
            identity=args.identity,
            stamp=self.attempt,
            opts=after(nodes, *between, *asked, parent=self),
        )
        self.register_outputs({})
        return Output.all(
            stdins=[nodes.stdin, gate.stdin], wanted=wanted, said=[nodes.stdout, gate.stdout]
        ).apply(lambda known: _is_of(known["stdins"], plan_digest(plan), known["wanted"]))


def _is_of(stdins: Sequence[str | None], *parts: str) -> bool:
    """A command that was left out of an update still has the text of the last one."""
    return all(shlex.quote(part) in (stdin or "") for stdin in stdins for part in parts)


def _addons(plan: Plan) -> dict[str, str]:
    """Add-ons of the user's: objects of all others that the cluster knows are deleted."""
    return {"ADDONS": " ".join(addon.name for addon in plan.addons)} if plan.addons else {}


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
        "SERVING_CERTIFICATES": plan.spec.kubelet.serving_certificates,
        "DEPLOYMENTS": " ".join(rollouts),
        **({"CLOUD_CONTROLLER": "external"} if clouds.has_controller(plan.spec) else {}),
        **_doors(plan),
    }


def _doors(plan: Plan) -> dict[str, str]:
    """Where a master asks for the API as clients outside do."""
    asked = [plan.vip] if plan.vip else []
    if plan.spec.front_doors.verify == "masters" and plan.endpoint not in asked:
        asked.append(plan.endpoint)
    said = api_record.zone(plan.spec)
    named = {}
    # What a private zone holds is not known where the engine runs.
    if said is not None and said.private:
        addresses = " ".join(api_record.known(plan) or ())
        named = {"API_NAME": api_record.name(plan.spec), "API_ADDRESSES": addresses}
    return ({"DOORS": " ".join(asked)} if asked else {}) | named
