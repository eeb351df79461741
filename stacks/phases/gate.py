"""What phase `gate` is told: what proves that the cluster works."""

from __future__ import annotations

from collections.abc import Mapping

from stacks.catalogue import registry as catalogue
from stacks.cluster import api_record, clouds, digests, names, rollout, sizing
from stacks.cluster.plan import Plan
from stacks.config.sizing import Size
from stacks.networks import registry
from stacks.render import acceptance as manifest

# Neighbours that each node's pod dials, by size: all pairs up to six nodes. Every node dials and is
# dialled at any size; of a thousand a ring proves as much as 5000 connections more.
_REACH: Mapping[Size, int] = {100: 5, 300: 3, 1000: 1}


def of_gate(plan: Plan) -> dict[str, str]:
    """Values of the gate phase, but for APPLIED; `make verify` runs it with the same ones."""
    network = registry.of(plan.spec)
    rollouts = ["kube-system/deployment/coredns"]
    if not plan.spec.network.kube_proxy_replacement:
        rollouts.append("kube-system/daemonset/kube-proxy")
    rollouts += network.ROLLOUTS
    rollouts += _of_addons(plan)
    return {
        "PLAN": plan_digest(plan),
        "NODES": str(sum(n.in_kubernetes and not n.is_absent for n in plan.nodes)),
        **left_out(plan),
        "MANIFEST": manifest.acceptance(plan).rstrip("\n"),
        "NETWORK": "1" if network.PROVED else "0",
        "NAMESPACE": manifest.NAMESPACE,
        "NAME": manifest.NAME,
        "PORT": str(manifest.PORT),
        "DNS_DOMAIN": plan.spec.cluster.dns_domain,
        "REACH": str(_REACH[sizing.of(plan)]),
        "SERVING_CERTIFICATES": plan.spec.kubelet.serving_certificates,
        "DEPLOYMENTS": " ".join(rollouts),
        **({"CLOUD_CONTROLLER": "external"} if clouds.has_controller(plan.spec) else {}),
        **_doors(plan),
    }


def _of_addons(plan: Plan) -> list[str]:
    """What those of the catalogue run, as far as their settings have it."""
    made = {
        f"{one.namespace}/{one.kind.partition('.')[0].lower()}/{one.name}"
        for addon in plan.addons
        for one in addon.objects
    }
    chosen = catalogue.chosen(plan.spec).values()
    return [one for entry in chosen for one in entry.ROLLOUTS if one in made]


def left_out(plan: Plan) -> dict[str, str]:
    """Whom nobody waits for: Nodes that are absent, and how many may be unresponsive besides."""
    absent = [node.name for node in plan.absent if node.in_kubernetes]
    return {**({"ABSENT": names.ranges(absent)} if absent else {}), **may_be_silent(plan)}


def may_be_silent(plan: Plan) -> dict[str, str]:
    """Which nodes may be unresponsive, and how many, without being called absent."""
    resting = [n.name for n in plan.nodes if n.in_kubernetes and n.state == "maintenance"]
    return {
        **({"MAINTENANCE": names.ranges(resting)} if resting else {}),
        "CONTROL_PLANE": names.ranges(node.name for node in plan.masters),
        "ABSENT_BUDGET": str(rollout.absent_budget(plan) - sum(n.is_silent for n in plan.nodes)),
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


def plan_digest(plan: Plan) -> str:
    """Hash of everything wanted: every change has to pass the gate before it is remembered."""
    # Of pools only what became nodes: hosts listed in another order are the same plan. How a change
    # reaches the nodes is nothing that they become.
    apart = {"pools", "nodes", "allow", "rollout", "hooks"}
    settings = plan.spec.model_dump_json(by_alias=True, exclude=apart)
    addons = [repr(plan.addons)] if plan.addons else []
    known = [(node.name, node.ssh.address, node.address) for node in plan.nodes if node.ssh]
    ways = [(name, way) for name, way, address in known if way != address]
    resting = [(n.name, n.drain, n.keep_pods_s) for n in plan.nodes if n.drain or n.keep_pods_s]
    more = [*addons, *(repr(one) for one in (ways, resting) if one)]
    return digests.digest(settings, repr(plan.versions), repr(plan.nodes), *more)
