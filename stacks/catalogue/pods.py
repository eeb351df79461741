"""What the pods of the catalogue's programs have in common: as few rights as they can do with."""

from __future__ import annotations

from collections.abc import Mapping

from stacks.documents.kubernetes_objects import ROLLING, SECCOMP, Document

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


def secret(volume: str, name: str, *keys: str) -> Document:
    """Those keys of a Secret, as a volume: no container starts before each of them is there.

    Without names a pod starts with what the Secret holds at the time. One whose password is made
    after it (components/scripts/manifests.sh) holds nothing then, and some programs read once.
    """
    items = [{"key": key, "path": key} for key in keys]
    return {"name": volume, "secret": {"secretName": name, "items": items}}


def apart(labels: Mapping[str, str]) -> Document:
    """An affinity: replicas on different nodes, where there are several."""
    term = {"labelSelector": {"matchLabels": dict(labels)}, "topologyKey": "kubernetes.io/hostname"}
    preferred = [{"weight": 100, "podAffinityTerm": term}]
    return {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}


# By which kubeadm marks control plane nodes.
_CONTROL_PLANE = "node-role.kubernetes.io/control-plane"


def daemon_set(
    metadata: Document, pod: Document, *, annotations: Mapping[str, str], control_plane: bool
) -> Document:
    """A pod on every control plane node, or on every other node. Its label is `app`, its name.

    What it runs serves nobody: a tenth of it may be away.
    """
    labels = {"app": metadata["name"]}
    where = {"key": _CONTROL_PLANE, "operator": "Exists" if control_plane else "DoesNotExist"}
    linux = {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]}
    term = {"nodeSelectorTerms": [{"matchExpressions": [where, linux]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": term}}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": metadata,
        "spec": {
            "selector": {"matchLabels": labels},
            "updateStrategy": ROLLING,
            "template": {
                "metadata": {"labels": labels, "annotations": annotations},
                "spec": {**pod, "affinity": affinity},
            },
        },
    }


def claim(metadata: Document, gib: int) -> Document:
    """Of a StatefulSet: a volume of the default StorageClass for each of its pods."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": metadata,
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": f"{gib}Gi"}},
        },
    }
