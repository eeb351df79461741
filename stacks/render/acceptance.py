"""Manifest of the acceptance check: a pod on every node that can be asked to call the others."""

from __future__ import annotations

from stacks.cluster.plan import Plan
from stacks.documents.kubernetes_objects import REAL_NODES, TOLERATE_ALL, Document, meta, requests
from stacks.documents.yaml_text import documents

NAMESPACE = "kube-ha-acceptance"
NAME = "netexec"
PORT = 8080


def acceptance(plan: Plan) -> str:
    """Namespace, DaemonSet and Service (cluster IP and node port) of the check."""
    image = f"registry.k8s.io/e2e-test-images/agnhost:{plan.versions.agnhost}"
    labels = {"app": NAME}
    restricted = {"pod-security.kubernetes.io/enforce": "restricted"}
    return documents(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": meta(NAMESPACE, **restricted)},
        {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": meta(NAME, NAMESPACE),
            "spec": {
                "selector": {"matchLabels": labels},
                "updateStrategy": {"rollingUpdate": {"maxUnavailable": "100%"}},
                "template": {"metadata": {"labels": labels}, "spec": _pod(image)},
            },
        },
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": meta(NAME, NAMESPACE),
            "spec": {
                "type": "NodePort",
                "selector": labels,
                "ports": [{"port": PORT, "protocol": "TCP"}],
            },
        },
    )


def _pod(image: str) -> Document:
    return {
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 1,
        "tolerations": TOLERATE_ALL,
        "affinity": REAL_NODES,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 65534,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [
            {
                "name": NAME,
                "image": image,
                # With its UDP server off netexec never says it is healthy.
                "args": ["netexec", f"--http-port={PORT}"],
                "readinessProbe": {
                    "httpGet": {"path": "/healthz", "port": PORT},
                    "periodSeconds": 2,
                },
                "resources": requests("1m", "16Mi"),
                "securityContext": {
                    "allowPrivilegeEscalation": False,
                    "capabilities": {"drop": ["ALL"]},
                    "readOnlyRootFilesystem": True,
                },
            }
        ],
    }
