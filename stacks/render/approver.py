"""Who lets the cluster's CA sign certificates of kubelets, and by what it judges them.

Kubernetes approves none of what they serve with by itself, and of what they are known by only what
they renew. approve.sh does, on every master, as the user of this manifest, who may do this alone.
"""

from __future__ import annotations

from stacks.cluster import clouds, serving_certificates
from stacks.cluster.certificates import APPROVER
from stacks.cluster.plan import Plan
from stacks.render import approver_addresses
from stacks.render.kubernetes_objects import Document, cluster_role, config_map, meta
from stacks.render.lost_nodes import CREDENTIALS
from stacks.render.yaml_text import documents

# ConfigMaps in kube-system, which no kubelet may write.
ADDRESSES = "kube-ha-addresses"
JOINING = "kube-ha-joining"  # which names join, and until when; mint.sh writes it
_SIGNERS = ["kubernetes.io/kube-apiserver-client-kubelet", "kubernetes.io/kubelet-serving"]
_NAME = "kube-ha-approver"


def table(plan: Plan) -> str:
    """Addresses of the wanted nodes; empty where kubelets ask for nothing."""
    if not serving_certificates.are_issued(plan):
        return ""
    return approver_addresses.addresses(node for node in plan.nodes if node.in_kubernetes)


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
                "resourceNames": _SIGNERS,
                "verbs": ["approve"],
            },
            # Whether one that wants to join is there already.
            {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]},
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
                "resourceNames": [ADDRESSES, JOINING, CREDENTIALS],
                "verbs": ["get"],
            },
            {
                "apiGroups": [""],
                "resources": ["configmaps"],
                "resourceNames": [CREDENTIALS],
                "verbs": ["patch"],
            },
        ],
    }
    user = {"apiGroup": rbac, "kind": "User", "name": APPROVER}
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
