"""TCP ports that machines listen on, by role."""

from __future__ import annotations

from collections.abc import Collection

from stacks.config.fields import Role

API_PORT = 6443  # kube-apiserver on each master
LOCAL_API_PORT = 3446  # HAProxy on each node, 127.0.0.1 only; the controlPlaneEndpoint, forever
ETCD_CLIENT_PORT = 2379
ETCD_PEER_PORT = 2380
INGRESS_PORTS = (80, 443)  # HTTP and HTTPS, for what runs in the cluster

_ETCD = {
    ETCD_CLIENT_PORT: "etcd's clients",
    ETCD_PEER_PORT: "etcd's members",
    2381: "etcd's metrics",
}
_NODE = {
    LOCAL_API_PORT: "HAProxy, the node's way to the API",
    10248: "the kubelet's health",
    10249: "kube-proxy's metrics",
    10250: "the kubelet",
    10256: "kube-proxy's health",
}
_MASTER = {
    API_PORT: "the API server",
    10257: "the controller manager",
    10259: "the scheduler",
}


def of_roles(roles: Collection[Role]) -> dict[int, str]:
    """What listens on a machine with these roles, by port."""
    ports: dict[int, str] = {}
    if "etcd" in roles:
        ports |= _ETCD
    if "master" in roles or "worker" in roles:
        ports |= _NODE
    if "loadbalancer" in roles:
        ports[LOCAL_API_PORT] = "HAProxy, the machine's way to the API"
    if "master" in roles:
        ports |= _MASTER
    return ports
