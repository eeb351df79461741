"""What runs in every cluster of kube-ha: its manifests by name."""

from __future__ import annotations

from stacks.cluster import rotation
from stacks.cluster.plan import Plan
from stacks.documents.kubernetes_objects import rolling
from stacks.networks import registry
from stacks.networks.network import Wanted
from stacks.render import (
    administrators,
    admission_policies,
    approver,
    coredns,
    kube_proxy,
    lost_nodes,
)

# Add-ons that bound what a worker may do: they come before it does.
GUARDS = ("admission-policies", "lost-nodes", "serving-certificates")


def addons(plan: Plan) -> dict[str, str]:
    """Manifests of what runs in every cluster of kube-ha, by name."""
    manifests = {
        "admission-policies": admission_policies.admission_policies(plan),
        "coredns": coredns.coredns(plan),
        "lost-nodes": lost_nodes.lost_nodes(plan),
        "serving-certificates": approver.manifest(plan),
    }
    if plan.spec.pki.admin_generation:
        manifests["admin-generation"] = administrators.administrators(plan)
    if not plan.spec.network.kube_proxy_replacement:
        manifests["kube-proxy"] = kube_proxy.kube_proxy(plan)
    wanted = Wanted(
        spec=plan.spec,
        versions=plan.versions,
        masters=len(plan.masters),
        annotations=rotation.annotation(plan),
        rolling=rolling(*plan.nodes_and_absent),
    )
    return {**manifests, **registry.of(plan.spec).manifests(wanted)}


def before(plan: Plan, name: str) -> tuple[str, ...]:
    """Add-ons that come before it: one that waits for kinds of another would keep that one out."""
    defined_by = registry.of(plan.spec).DEFINED_BY.get(name)
    return (defined_by,) if defined_by else ()


def of_addon(plan: Plan, name: str, manifest: str) -> dict[str, str]:
    """Values of the addon phase."""
    generation = str(plan.spec.converge.generation)
    pruned = registry.of(plan.spec).PRUNED.get(name)
    return {
        "NAME": name,
        "MANIFEST": manifest.rstrip("\n"),
        "GENERATION": generation,
        **({"PRUNED": pruned} if pruned else {}),
    }
