"""A pod on every node that asks what listens there, and writes to the servers.

It is in the network of the node, where control planes listen at 127.0.0.1, and keeps for two hours
what it cannot write.
"""

from __future__ import annotations

from stacks.catalogue.entry import Wanted
from stacks.catalogue.pods import CONFINED, daemon_set, secret
from stacks.catalogue.prometheus import scrape
from stacks.catalogue.prometheus.names import (
    ACCESS,
    ACCESS_FOLDER,
    AGENT,
    AGENT_PORT,
    FACTS,
    NAMESPACE,
    NODE_PORT,
    addresses,
)
from stacks.documents.kubernetes_objects import (
    SECCOMP,
    TOLERATE_ALL,
    Document,
    cluster_role,
    cluster_role_binding,
    config_annotation,
    config_map,
    field,
    host_path,
    meta,
    mount,
    requests,
    service_account,
)
from stacks.documents.yaml_text import documents

_FILE = "agent.yaml"
_KEPT = "2h"  # of what no server takes


def objects(wanted: Wanted) -> tuple[Document, ...]:
    """Account, rights, and a ConfigMap and a DaemonSet for each kind of node."""
    metrics = ["/metrics", "/metrics/cadvisor"]
    rules: list[Document] = [
        {"nonResourceURLs": metrics, "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["nodes/metrics"], "verbs": ["get"]},
    ]
    return (
        service_account(AGENT, NAMESPACE),
        cluster_role(AGENT, rules),
        cluster_role_binding(AGENT, AGENT, AGENT, NAMESPACE),
        *_of_nodes(wanted, control_plane=True),
        *_of_nodes(wanted, control_plane=False),
    )


def names() -> tuple[str, str]:
    """Of the DaemonSets: on control plane nodes, on all others."""
    return f"{AGENT}-control-plane", f"{AGENT}-worker"


def _of_nodes(wanted: Wanted, *, control_plane: bool) -> tuple[Document, Document]:
    name = names()[0 if control_plane else 1]
    servers = addresses(wanted.masters, wanted.spec.cluster.dns_domain)
    config = scrape.agent(servers, control_plane=control_plane, etcd=wanted.etcd > 0)
    data = {_FILE: documents(config)}
    agents = daemon_set(
        meta(name, NAMESPACE, app=name),
        _pod(wanted, name),
        annotations=config_annotation(data),
        control_plane=control_plane,
    )
    return config_map(name, NAMESPACE, data), agents


def _pod(wanted: Wanted, config: str) -> Document:
    return {
        "hostNetwork": True,
        "hostPID": True,  # the node's /proc
        # Servers are known by their names in the cluster.
        "dnsPolicy": "ClusterFirstWithHostNet",
        "securityContext": SECCOMP | {"runAsNonRoot": True, "runAsUser": 65534, "fsGroup": 65534},
        "priorityClassName": "system-node-critical",
        "serviceAccountName": AGENT,
        "tolerations": TOLERATE_ALL,
        "containers": [_agent(wanted), _node_exporter(wanted)],
        "volumes": [
            {"name": "config", "configMap": {"name": config}},
            secret("access", ACCESS, "password"),
            {"name": "data", "emptyDir": {"sizeLimit": "2Gi"}},
            host_path("node", "/", "Directory"),
        ],
    }


def _agent(wanted: Wanted) -> Document:
    return {
        "name": "agent",
        "image": f"quay.io/prometheus/prometheus:v{wanted.versions.prometheus}",
        "command": ["/bin/prometheus"],
        "args": [
            "--agent",
            f"--config.file=/etc/prometheus/{_FILE}",
            "--storage.agent.path=/data",
            f"--storage.agent.retention.max-time={_KEPT}",
            f"--web.listen-address=127.0.0.1:{AGENT_PORT}",
            "--log.level=warn",
        ],
        "env": [field("NODE", "spec.nodeName")],
        "livenessProbe": _probe(AGENT_PORT, "/-/healthy"),
        "readinessProbe": _probe(AGENT_PORT, "/-/ready"),
        "resources": requests("20m", "80Mi"),
        "securityContext": CONFINED,
        "volumeMounts": [
            mount("config", "/etc/prometheus", read_only=True),
            mount("access", ACCESS_FOLDER, read_only=True),
            mount("data", "/data"),
        ],
    }


def _node_exporter(wanted: Wanted) -> Document:
    return {
        "name": "node-exporter",
        "image": f"quay.io/prometheus/node-exporter:v{wanted.versions.node_exporter}",
        "command": ["/bin/node_exporter"],
        "args": [
            f"--web.listen-address=127.0.0.1:{NODE_PORT}",
            "--path.rootfs=/host",
            "--path.sysfs=/host/sys",
            "--path.udev.data=/host/run/udev/data",
            f"--collector.textfile.directory=/host{FACTS}",
            # Pods' own mounts and interfaces come and go.
            "--collector.filesystem.mount-points-exclude="
            "^/(dev|proc|sys|run|var/lib/(kubelet|containerd|containers)/.+)($|/)",
            "--collector.netclass.ignored-devices=^(veth|cali|lxc|cni).*$",
            "--collector.netdev.device-exclude=^(veth|cali|lxc|cni).*$",
            "--no-collector.wifi",
            "--log.level=warn",
        ],
        "livenessProbe": _probe(NODE_PORT, "/"),
        "resources": requests("10m", "24Mi"),
        "securityContext": CONFINED,
        "volumeMounts": [
            {**mount("node", "/host", read_only=True), "mountPropagation": "HostToContainer"}
        ],
    }


def _probe(port: int, path: str) -> Document:
    """Of a program that listens at 127.0.0.1: in the network of the node the kubelet reaches it."""
    get = {"host": "127.0.0.1", "path": path, "port": port}
    return {"httpGet": get, "periodSeconds": 10, "timeoutSeconds": 5, "failureThreshold": 6}
