"""Who lets the cluster's CA sign certificates of kubelets, and by what it judges them.

Kubernetes approves none of what they serve with by itself, and of what they are known by only what
they renew. approve.sh does, on every master, as the user of this manifest, who may do this alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from stacks.cluster import clouds, serving_certificates
from stacks.cluster.certificates import APPROVER
from stacks.cluster.plan import Plan
from stacks.documents.kubernetes_objects import Document, cluster_role, config_map, meta
from stacks.documents.yaml_text import documents
from stacks.render import approver_addresses
from stacks.render.lost_nodes import CREDENTIALS

# ConfigMaps in kube-system, which no kubelet may write.
ADDRESSES = "kube-ha-addresses"
JOINING = "kube-ha-joining"  # which names join, and until when; mint.sh writes it
_SIGNERS = ["kubernetes.io/kube-apiserver-client-kubelet", "kubernetes.io/kubelet-serving"]
_NAME, _RBAC = "kube-ha-approver", "rbac.authorization.k8s.io"


def table(plan: Plan) -> str:
    """Addresses of the wanted nodes; empty where kubelets ask for nothing."""
    if not serving_certificates.are_issued(plan):
        return ""
    return approver_addresses.addresses(node for node in plan.nodes if node.in_kubernetes)


def manifest(plan: Plan) -> str:
    """Addresses of the wanted nodes, and what the approver may do."""
    domain = clouds.inner_domain(plan.spec)
    named = {"domain": domain} if domain else {}
    reads: Document = {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "Role",
        "metadata": meta(_NAME, "kube-system"),
        "rules": [
            _configmaps([ADDRESSES, JOINING, CREDENTIALS], "get"),
            _configmaps([CREDENTIALS], "patch"),
        ],
    }
    return documents(
        config_map(ADDRESSES, "kube-system", {"addresses": f"{table(plan)}\n", **named}),
        _may_approve(),
        _binding("ClusterRole", meta(_NAME)),
        reads,
        _binding("Role", meta(_NAME, "kube-system")),
    )


def _may_approve() -> Document:
    requests = "certificatesigningrequests"
    certificates: dict[str, object] = {"apiGroups": ["certificates.k8s.io"]}
    approves = {"resources": ["signers"], "resourceNames": _SIGNERS, "verbs": ["approve"]}
    return cluster_role(
        _NAME,
        [
            {**certificates, "resources": [requests], "verbs": ["list", "watch"]},
            {**certificates, "resources": [f"{requests}/approval"], "verbs": ["patch"]},
            {**certificates, **approves},
            # Whether one that wants to join is there already.
            {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]},
        ],
    )


def _configmaps(names: list[str], verb: str) -> dict[str, object]:
    what = {"apiGroups": [""], "resources": ["configmaps"]}
    return {**what, "resourceNames": names, "verbs": [verb]}


def _binding(kind: Literal["ClusterRole", "Role"], about: Mapping[str, object]) -> Document:
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": f"{kind}Binding",
        "metadata": about,
        "roleRef": {"apiGroup": _RBAC, "kind": kind, "name": _NAME},
        "subjects": [{"apiGroup": _RBAC, "kind": "User", "name": APPROVER}],
    }
