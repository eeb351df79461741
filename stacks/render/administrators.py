"""Whose kubeconfig of the stack may do everything: that of one generation, and no other.

Kubernetes takes a certificate until it ends, so a leaked one is shut out by its group. Each
generation of the administrator's certificate is in a group of its own, and this one object names
the group that counts. A raised generation replaces its subject in a single write: what the old
kubeconfig may do ends with the moment in which the new one may do it. Masters act by admin.conf,
in kubeadm's group, before and after; so there is no time without an administrator, and a first
update needs no right that is not there yet.
"""

from __future__ import annotations

from stacks.cluster.certificates import administrators as group_of
from stacks.cluster.plan import Plan
from stacks.documents.kubernetes_objects import meta
from stacks.documents.yaml_text import documents

_RBAC = "rbac.authorization.k8s.io"


def administrators(plan: Plan) -> str:
    """A ClusterRoleBinding; for a plan with `pki.adminGeneration`."""
    return documents(
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": meta("kube-ha-administrators"),
            "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"apiGroup": _RBAC, "kind": "Group", "name": group_of(plan)}],
        }
    )
