"""What lets workers join: the bootstrap token in the cluster, and the kubeconfig carrying it."""

from __future__ import annotations

import base64

from stacks.files import kubeadm
from stacks.files.yaml_text import documents
from stacks.plan import Node, Plan
from stacks.ports import LOCAL_API_PORT

TOKEN_LIFE = "2h0m0s"  # noqa: S105 - a duration


def bootstrap_token(plan: Plan, node: Node, token: str) -> str:
    """For `kubeadm init phase bootstrap-token` on a master. Secret: holds the token."""
    return documents(
        {
            "apiVersion": "kubeadm.k8s.io/v1beta4",
            "kind": "InitConfiguration",
            "bootstrapTokens": [
                {
                    "token": token,
                    "ttl": TOKEN_LIFE,
                    "usages": ["authentication", "signing"],
                    "groups": ["system:bootstrappers:kubeadm:default-node-token"],
                }
            ],
            "localAPIEndpoint": {"advertiseAddress": node.address},
            "nodeRegistration": {
                "name": node.name,
                "criSocket": "unix:///run/containerd/containerd.sock",
            },
        },
        kubeadm.cluster_configuration(plan),
    )


def discovery(ca_pem: str, token: str) -> str:
    """Kubeconfig for discovery by file. Secret: the token is its user, for an empty user fails."""
    return documents(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "join",
            "clusters": [
                {
                    "name": "join",
                    "cluster": {
                        "server": f"https://127.0.0.1:{LOCAL_API_PORT}",
                        "certificate-authority-data": base64.b64encode(ca_pem.encode()).decode(),
                    },
                }
            ],
            "users": [{"name": "join", "user": {"token": token}}],
            "contexts": [{"name": "join", "context": {"cluster": "join", "user": "join"}}],
        }
    )
