"""Who lets the cluster's CA sign serving certificates of kubelets, and by what it judges them.

Kubernetes approves none of their requests by itself. approve.sh does, on every master; what may
approve is the user of this manifest, and as that user it asks the API.
"""

from __future__ import annotations

from stacks import clouds, serving
from stacks.files.manifests import Document, cluster_role, config_map, meta
from stacks.files.yaml_text import documents
from stacks.plan import Plan

USER = "kube-ha:approver"
ADDRESSES = "kube-ha-addresses"  # ConfigMap in kube-system, which no kubelet may write
_SIGNER = "kubernetes.io/kubelet-serving"
_NAME = "kube-ha-approver"


def table(plan: Plan) -> str:
    """Addresses of the wanted nodes; empty where kubelets ask for nothing."""
    if not serving.are_issued(plan):
        return ""
    return serving.addresses(node for node in plan.nodes if node.in_kubernetes)


def manifest(plan: Plan) -> str:
    """Addresses of the wanted nodes, and what the approver may do."""
    lines = table(plan)
    role = cluster_role(
        _NAME,
        [
            {
                "apiGroups": ["certificates.k8s.io"],
                "resources": ["certificatesigningrequests"],
                "verbs": ["list", "watch"],
            },
            {
                "apiGroups": ["certificates.k8s.io"],
                "resources": ["certificatesigningrequests/approval"],
                "verbs": ["patch"],
            },
            {
                "apiGroups": ["certificates.k8s.io"],
                "resources": ["signers"],
                "resourceNames": [_SIGNER],
                "verbs": ["approve"],
            },
        ],
    )
    rbac = "rbac.authorization.k8s.io"
    reads: Document = {
        "apiVersion": f"{rbac}/v1",
        "kind": "Role",
        "metadata": meta(_NAME, "kube-system"),
        "rules": [
            {
                "apiGroups": [""],
                "resources": ["configmaps"],
                "resourceNames": [ADDRESSES],
                "verbs": ["get"],
            }
        ],
    }
    user = {"apiGroup": rbac, "kind": "User", "name": USER}
    approves: Document = {
        "apiVersion": f"{rbac}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": meta(_NAME),
        "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": _NAME},
        "subjects": [user],
    }
    looks_up: Document = {
        "apiVersion": f"{rbac}/v1",
        "kind": "RoleBinding",
        "metadata": meta(_NAME, "kube-system"),
        "roleRef": {"apiGroup": rbac, "kind": "Role", "name": _NAME},
        "subjects": [user],
    }
    domain = clouds.inner_domain(plan.spec)
    named = {"domain": domain} if domain else {}
    known = config_map(ADDRESSES, "kube-system", {"addresses": f"{lines}\n", **named})
    return documents(known, role, approves, reads, looks_up)
