"""Names that the objects of the add-on know each other by."""

from __future__ import annotations

NAMESPACE = "kube-system"  # agents look at the nodes' own file systems
SERVER = "prometheus"
AGENT = "prometheus-agent"
USER = "prometheus"  # whoever writes to it or asks it
ACCESS = "prometheus-access"  # Secret: password, web.yaml, client.yaml
ACCESS_FOLDER = "/etc/prometheus-access"
PORT = 9090
AGENT_PORT = 9095  # at 127.0.0.1 of each node
NODE_PORT = 9100  # at 127.0.0.1 of each node
TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount/token"  # noqa: S105 - its file
CA = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt"
FACTS = "/run/kube-ha-metrics"  # on nodes: what components/scripts/metrics.sh writes


def replicas(masters: int) -> int:
    """Servers that all hold the same, so that the death of a node leaves one."""
    return min(2, masters)


def addresses(masters: int, dns_domain: str) -> list[str]:
    """Of each server: where agents write to."""
    return [
        f"http://{SERVER}-{number}.{SERVER}.{NAMESPACE}.svc.{dns_domain}:{PORT}"
        for number in range(replicas(masters))
    ]
