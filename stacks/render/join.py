"""What lets workers join: the bootstrap token in the cluster, and the kubeconfig carrying it."""

from __future__ import annotations

import base64

from stacks.cluster.plan import Node, Plan
from stacks.config.ports import LOCAL_API_PORT
from stacks.documents.yaml_text import documents
from stacks.render import kubeadm

OURS = "kube-ha: for machines that join now"  # by which tokens.sh finds them again
_BASE_S = 2 * 3600
_LONGEST_S = 24 * 3600
_JOIN_S = 90  # for a machine to be made ready and to join, slow downloads included
_AT_ONCE = 8  # machines that an engine on two cores works on side by side


def token_life_s(joining: int) -> int:
    """How long a token has to live: it is minted before the first machine is ready for it."""
    return min(_BASE_S + _JOIN_S * joining // _AT_ONCE, _LONGEST_S)


def bootstrap_token(plan: Plan, node: Node, token: str, *, joining: int) -> str:
    """For `kubeadm init phase bootstrap-token` on a master. Secret: holds the token."""
    return documents(
        {
            "apiVersion": "kubeadm.k8s.io/v1beta4",
            "kind": "InitConfiguration",
            "bootstrapTokens": [
                {
                    "token": token,
                    "description": OURS,
                    "ttl": f"{token_life_s(joining)}s",
                    # Not `signing`: the cluster is found by a file that the stack gives, and nobody
                    # else is to check a token against what anybody may read.
                    "usages": ["authentication"],
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
