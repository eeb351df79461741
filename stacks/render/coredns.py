"""Manifest of CoreDNS: names of services."""

from __future__ import annotations

from stacks.cluster import rotation
from stacks.cluster.plan import Plan
from stacks.config.fields import ZONE_LABEL
from stacks.documents.kubernetes_objects import (
    SECCOMP,
    Document,
    cluster_role,
    cluster_role_binding,
    config_annotation,
    config_map,
    meta,
    mount,
    service_account,
)
from stacks.documents.yaml_text import documents

_NAMESPACE = "kube-system"
_NAME = "coredns"
_SERVICE = "kube-dns"  # the name every cluster knows it by
_LABELS = {"k8s-app": _SERVICE}

_COREFILE = """\
.:53 {{
    errors
    health {{
        lameduck 5s
    }}
    ready
    kubernetes {domain} in-addr.arpa ip6.arpa {{
        pods insecure
        fallthrough in-addr.arpa ip6.arpa
        ttl 30
    }}
    prometheus :9153
    forward . /etc/resolv.conf {{
        max_concurrent 1000
    }}
    cache 30 {{
        disable success {domain}
        disable denial {domain}
    }}
    loop
    reload
    loadbalance
}}
"""


def coredns(plan: Plan) -> str:
    """Account, rights, config, Deployment, disruption budget and Service of CoreDNS."""
    data = {"Corefile": _COREFILE.format(domain=plan.spec.cluster.dns_domain)}
    # Two on one node would die together: where there is one node only, one is all there can be.
    replicas = min(plan.spec.network.dns_replicas, sum(node.in_kubernetes for node in plan.nodes))
    # Of many a tenth: else the nodes of a wave would wait for each other's.
    unavailable = max(1, replicas // 10)
    return documents(
        service_account(_NAME, _NAMESPACE),
        cluster_role(f"system:{_NAME}", _rights()),
        cluster_role_binding(f"system:{_NAME}", f"system:{_NAME}", _NAME, _NAMESPACE),
        config_map(_NAME, _NAMESPACE, data),
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": meta(_NAME, _NAMESPACE, **_LABELS),
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": _LABELS},
                "strategy": {
                    "type": "RollingUpdate",
                    "rollingUpdate": {"maxUnavailable": unavailable},
                },
                "template": {
                    "metadata": {
                        "labels": _LABELS,
                        "annotations": config_annotation(data) | rotation.annotation(plan),
                    },
                    "spec": {
                        **_pod(f"registry.k8s.io/coredns/coredns:v{plan.versions.coredns}"),
                        **_spread(plan),
                    },
                },
            },
        },
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": meta(_NAME, _NAMESPACE),
            "spec": {"maxUnavailable": unavailable, "selector": {"matchLabels": _LABELS}},
        },
        _service(plan),
    )


def _rights() -> list[Document]:
    look = ["list", "watch"]
    return [
        {"apiGroups": [""], "resources": ["namespaces", "pods", "services"], "verbs": look},
        {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": look},
    ]


def _pod(image: str) -> Document:
    return {
        "securityContext": SECCOMP,
        "priorityClassName": "system-cluster-critical",
        "serviceAccountName": _NAME,
        "dnsPolicy": "Default",
        "tolerations": [
            {"key": "CriticalAddonsOnly", "operator": "Exists"},
            {"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"},
            # A minute, not five: until then half of all questions go to a dead node's replica.
            *(_leave_after_a_minute(why) for why in ("not-ready", "unreachable")),
        ],
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "affinity": {
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {
                        "labelSelector": {"matchLabels": _LABELS},
                        "topologyKey": "kubernetes.io/hostname",
                    }
                ]
            }
        },
        "containers": [_container(image)],
        "volumes": [{"name": "config", "configMap": {"name": _NAME}}],
    }


def _spread(plan: Plan) -> Document:
    """Replicas in different zones, where there are zones and room in them."""
    if not any(node.zone_label for node in plan.nodes):
        return {}
    constraint = {
        "maxSkew": 1,
        "topologyKey": ZONE_LABEL,
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": _LABELS},
    }
    return {"topologySpreadConstraints": [constraint]}


def _leave_after_a_minute(why: str) -> Document:
    return {
        "key": f"node.kubernetes.io/{why}",
        "operator": "Exists",
        "effect": "NoExecute",
        "tolerationSeconds": 60,
    }


def _container(image: str) -> Document:
    return {
        "name": _NAME,
        "image": image,
        "args": ["-conf", "/etc/coredns/Corefile"],
        "ports": [
            {"name": "dns", "containerPort": 53, "protocol": "UDP"},
            {"name": "dns-tcp", "containerPort": 53, "protocol": "TCP"},
            {"name": "metrics", "containerPort": 9153, "protocol": "TCP"},
        ],
        "livenessProbe": {
            "httpGet": {"path": "/health", "port": 8080},
            "initialDelaySeconds": 60,
            "timeoutSeconds": 5,
            "failureThreshold": 5,
        },
        "readinessProbe": {"httpGet": {"path": "/ready", "port": 8181}, "periodSeconds": 3},
        "resources": {
            "requests": {"cpu": "50m", "memory": "70Mi"},
            "limits": {"memory": "170Mi"},
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"add": ["NET_BIND_SERVICE"], "drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
        "volumeMounts": [mount("config", "/etc/coredns", read_only=True)],
    }


def _service(plan: Plan) -> Document:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            **meta(_SERVICE, _NAMESPACE, **_LABELS),
            "annotations": {"prometheus.io/port": "9153", "prometheus.io/scrape": "true"},
        },
        "spec": {
            "clusterIP": plan.dns_service_ip,
            "selector": _LABELS,
            "ports": [
                {"name": "dns", "port": 53, "protocol": "UDP"},
                {"name": "dns-tcp", "port": 53, "protocol": "TCP"},
                {"name": "metrics", "port": 9153, "protocol": "TCP"},
            ],
        },
    }
