"""What the manifests of flannel, kube-proxy, CoreDNS and the acceptance check have in common."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from stacks.config.ports import LOCAL_API_PORT

TOLERATE_ALL = [{"operator": "Exists"}]

# Fake nodes of kwok have no kernel to set up.
REAL_NODES: dict[str, object] = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [
                {
                    "matchExpressions": [
                        {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]},
                        {"key": "type", "operator": "NotIn", "values": ["kwok"]},
                    ]
                }
            ]
        }
    }
}

# The node's own door to the API: these pods make the service network, so they cannot use it.
LOCAL_API = (
    {"name": "KUBERNETES_SERVICE_HOST", "value": "127.0.0.1"},
    {"name": "KUBERNETES_SERVICE_PORT", "value": str(LOCAL_API_PORT)},
)

# Ten at a time of a hundred; of a handful, one.
ROLLING: dict[str, object] = {
    "type": "RollingUpdate",
    "rollingUpdate": {"maxUnavailable": "10%"},
}


def rolling(nodes: int, absent: int) -> dict[str, object]:
    """The update strategy of a DaemonSet of so many nodes, of which some are absent.

    What is missing there counts as unavailable: without more room no other pod would be replaced.
    """
    if not absent:
        return ROLLING
    room = -(-nodes // 10) + absent
    return {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": room}}


Document = dict[str, object]

# Of our own pods: no system call that containers do not need, no more rights than at the start.
SECCOMP: Document = {"seccompProfile": {"type": "RuntimeDefault"}}


def meta(name: str, namespace: str | None = None, **labels: str) -> Document:
    """ObjectMeta; labels by name of the keyword."""
    out: Document = {"name": name}
    if namespace is not None:
        out["namespace"] = namespace
    if labels:
        out["labels"] = dict(labels)
    return out


def config_map(name: str, namespace: str, data: Mapping[str, str]) -> Document:
    """A ConfigMap of `data`: file name -> content."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": meta(name, namespace),
        "data": dict(data),
    }


def config_annotation(data: Mapping[str, str]) -> dict[str, str]:
    """Annotation of a pod template that changes with `data`, so that pods restart to read it."""
    text = "\0".join(f"{name}\0{content}" for name, content in sorted(data.items()))
    return {"kube-ha/config": hashlib.sha256(text.encode()).hexdigest()[:16]}


def service_account(name: str, namespace: str) -> Document:
    """A ServiceAccount."""
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta(name, namespace)}


def cluster_role(name: str, rules: list[Document]) -> Document:
    """A ClusterRole with these rules."""
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": meta(name),
        "rules": rules,
    }


def cluster_role_binding(name: str, role: str, account: str, namespace: str) -> Document:
    """Gives a ServiceAccount a ClusterRole."""
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": meta(name),
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": namespace}],
    }


def field(name: str, path: str) -> Document:
    """An environment variable with a field of the pod."""
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def host_path(name: str, path: str, kind: str | None = None) -> Document:
    """A volume of the node's file system; `kind` as in Kubernetes, None for no check."""
    source: Document = {"path": path}
    if kind is not None:
        source["type"] = kind
    return {"name": name, "hostPath": source}


def mount(name: str, path: str, *, read_only: bool = False) -> Document:
    """Where a volume appears in a container."""
    out: Document = {"name": name, "mountPath": path}
    if read_only:
        out["readOnly"] = True
    return out


def requests(cpu: str, memory: str) -> Document:
    """Resource requests; no limits."""
    return {"requests": {"cpu": cpu, "memory": memory}}
