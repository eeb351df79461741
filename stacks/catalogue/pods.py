"""What the pods of the catalogue's programs have in common: as few rights as they can do with."""

from __future__ import annotations

from stacks.documents.kubernetes_objects import SECCOMP, Document

# Of a container.
CONFINED: Document = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "readOnlyRootFilesystem": True,
}


def pod(account: str, container: Document, volume: Document) -> Document:
    """A pod's spec: of nobody, on any node of Linux, control plane nodes too."""
    return {
        "securityContext": SECCOMP | {"runAsNonRoot": True, "runAsUser": 65534},
        "priorityClassName": "system-cluster-critical",
        "serviceAccountName": account,
        "tolerations": [{"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}],
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "containers": [container],
        "volumes": [volume],
    }
