"""Manifest of the list of load balancers that may hold the virtual IP, and of who reads it.

They are no Nodes, so nothing else in the cluster tells one that was taken out while it was away.
"""

from __future__ import annotations

from stacks.cluster.certificates import LOAD_BALANCERS
from stacks.cluster.plan import Plan
from stacks.documents.kubernetes_objects import config_map, meta
from stacks.documents.yaml_text import documents

NAME = "kube-ha-vip-holders"
_NAMESPACE = "kube-system"
_RBAC = "rbac.authorization.k8s.io"


def vip_holders(plan: Plan) -> str:
    """ConfigMap name -> generation, and the right of load balancers to read it and nothing else.

    Empty where masters hold the address, which are told by their Nodes: load balancers that were
    there before give it up by that.
    """
    listed = {
        node.name: str(node.generation)
        for node in plan.holders
        if node.is_load_balancer and node.state == "active"
    }
    return documents(
        config_map(NAME, _NAMESPACE, listed),
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "Role",
            "metadata": meta(NAME, _NAMESPACE),
            "rules": [
                {
                    "apiGroups": [""],
                    "resources": ["configmaps"],
                    "resourceNames": [NAME],
                    "verbs": ["get"],
                }
            ],
        },
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "RoleBinding",
            "metadata": meta(NAME, _NAMESPACE),
            "roleRef": {"apiGroup": _RBAC, "kind": "Role", "name": NAME},
            "subjects": [{"apiGroup": _RBAC, "kind": "Group", "name": LOAD_BALANCERS}],
        },
    )
