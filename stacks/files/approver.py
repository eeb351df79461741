"""Who lets the cluster's CA sign serving certificates of kubelets, and by what it judges them.

Kubernetes approves none of their requests by itself. approve.sh does, on every master; what may
approve is the user of this manifest, and as that user it asks the API.
"""

from __future__ import annotations

from stacks import serving
from stacks.files.manifests import Document, cluster_role, config_map, meta
from stacks.files.yaml_text import documents
from stacks.plan import Plan

UNIT = "/etc/systemd/system/kube-ha-approver.service"
SCRIPT = "/etc/kube-ha/approve"
USER = "kube-ha:approver"
ADDRESSES = "kube-ha-addresses"  # ConfigMap in kube-system, which no kubelet may write
_SIGNER = "kubernetes.io/kubelet-serving"
_NAME = "kube-ha-approver"

# The folder holds the key of admin.conf in a file of its own, for curl; it goes when this ends.
_UNIT = f"""\
[Unit]
Description=approves serving certificates of kubelets
After=network-online.target haproxy.service
StartLimitIntervalSec=0

[Service]
ExecStart={SCRIPT}
Restart=always
RestartSec=5
RuntimeDirectory={_NAME}
RuntimeDirectoryMode=0700
Nice=10
CPUQuota=50%
MemoryMax=256M
TasksMax=64
NoNewPrivileges=yes

[Install]
WantedBy=multi-user.target
"""


def unit() -> str:
    """/etc/systemd/system/kube-ha-approver.service."""
    return _UNIT


def manifest(plan: Plan) -> str:
    """Addresses of the wanted nodes, and what the approver may do."""
    lines = serving.addresses(node for node in plan.nodes if node.in_kubernetes)
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
    table = config_map(ADDRESSES, "kube-system", {"addresses": f"{lines}\n"})
    return documents(table, role, approves, reads, looks_up)
