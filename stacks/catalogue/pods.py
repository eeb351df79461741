"""What the pods of the catalogue's programs have in common: as few rights as they can do with."""

from __future__ import annotations

from collections.abc import Mapping

from stacks.documents.kubernetes_objects import SECCOMP, Document

# Of a container.
CONFINED: Document = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "readOnlyRootFilesystem": True,
}


def pod(account: str, container: Document, *volumes: Document) -> Document:
    """A pod's spec: of nobody, on any node of Linux, control plane nodes too."""
    return {
        "securityContext": SECCOMP | {"runAsNonRoot": True, "runAsUser": 65534},
        "priorityClassName": "system-cluster-critical",
        "serviceAccountName": account,
        "tolerations": [{"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}],
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "containers": [container],
        "volumes": list(volumes),
    }


def apart(labels: Mapping[str, str]) -> Document:
    """An affinity: replicas on different nodes, where there are several."""
    term = {"labelSelector": {"matchLabels": dict(labels)}, "topologyKey": "kubernetes.io/hostname"}
    preferred = [{"weight": 100, "podAffinityTerm": term}]
    return {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
