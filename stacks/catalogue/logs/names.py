"""Names that the objects of the add-on know each other by, and what its lines are found by."""

from __future__ import annotations

NAMESPACE = "kube-system"  # collectors look at the nodes' own file systems
COLLECTOR = "logs-collector"
STORE = "logs-store"
POD = f"{STORE}-0"  # the one of its StatefulSet
RECEIVER = "logs-receiver"  # ConfigMap of the program before the store
ACCESS = "logs-access"  # Secret: password
ACCESS_FOLDER = "/etc/logs-access"
USER = "collector"  # whose password it is
ENDPOINT_FOLDER = "/etc/logs-endpoint"  # of the Secret that the config names
ENDPOINT_KEY = "authorization"  # in it
RECEIVER_PORT = 4318  # of OTLP over HTTP
STORE_PORT = 3100  # at 127.0.0.1 of the store's pod
HEALTH_PORT = 13133
FOLDER = "logs"  # below FOLDERS of stacks/catalogue/entry.py: what collectors keep on a node

# Attributes of a line's resource. A store writes them with _ in place of dots.
CLUSTER_NAME = "k8s.cluster.name"
NODE = "k8s.node.name"
ROLE = "role"  # master, worker
LOG = "log"  # journal, pods, audit
UNIT = "unit"  # of the journal: a service, kernel, or other
POD_NAMESPACE = "k8s.namespace.name"
POD_NAME = "k8s.pod.name"
CONTAINER = "k8s.container.name"
SERVICE = "service.name"  # by which stores tell programs apart: unit, container or audit
LABELS = (CLUSTER_NAME, NODE, ROLE, LOG, UNIT, POD_NAMESPACE, POD_NAME, CONTAINER)


def label(attribute: str) -> str:
    """As Loki calls it."""
    return attribute.replace(".", "_")


def receiver(dns_domain: str) -> str:
    """Where collectors send to, without an endpoint of the config."""
    return f"http://{STORE}.{NAMESPACE}.svc.{dns_domain}:{RECEIVER_PORT}"
