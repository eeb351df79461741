"""Manifest of kube-proxy: services on every node."""

from __future__ import annotations

from stacks.cluster import rotation
from stacks.cluster.plan import Plan
from stacks.config.ports import LOCAL_API_PORT
from stacks.documents.kubernetes_objects import (
    REAL_NODES,
    SECCOMP,
    TOLERATE_ALL,
    Document,
    cluster_role_binding,
    config_annotation,
    config_map,
    field,
    host_path,
    meta,
    mount,
    requests,
    rolling,
    service_account,
)
from stacks.documents.yaml_text import documents

_NAMESPACE = "kube-system"
_NAME = "kube-proxy"
_TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount"  # noqa: S105 - a folder


def kube_proxy(plan: Plan) -> str:
    """Account, config and DaemonSet of kube-proxy."""
    data = {"config.conf": _configuration(plan), "kubeconfig.conf": _kubeconfig()}
    labels = {"k8s-app": _NAME}
    return documents(
        service_account(_NAME, _NAMESPACE),
        # Exists in every cluster; node-proxier may read nodes, services and endpoints.
        cluster_role_binding("kube-ha:kube-proxy", "system:node-proxier", _NAME, _NAMESPACE),
        config_map(_NAME, _NAMESPACE, data),
        {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": meta(_NAME, _NAMESPACE, **labels),
            "spec": {
                "selector": {"matchLabels": labels},
                "updateStrategy": rolling(*plan.nodes_and_absent),
                "template": {
                    "metadata": {
                        "labels": labels,
                        "annotations": config_annotation(data) | rotation.annotation(plan),
                    },
                    "spec": _pod(f"registry.k8s.io/kube-proxy:v{plan.versions.kubernetes}"),
                },
            },
        },
    )


def _configuration(plan: Plan) -> str:
    out: Document = {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": plan.spec.network.proxy_mode,
        "clusterCIDR": plan.spec.cluster.pod_cidr,
        "clientConnection": {"kubeconfig": "/etc/kube-proxy/kubeconfig.conf"},
        "healthzBindAddress": "0.0.0.0:10256",
        "metricsBindAddress": "127.0.0.1:10249",
    }
    if plan.containers:
        # nf_conntrack_max cannot be written there, and kube-proxy ends when it fails to.
        out |= {"conntrack": {"maxPerCore": 0, "min": 0}, "oomScoreAdj": 0}
    return documents(out)


def _kubeconfig() -> str:
    server = f"https://127.0.0.1:{LOCAL_API_PORT}"
    cluster = {"server": server, "certificate-authority": f"{_TOKEN}/ca.crt"}
    return documents(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "local", "cluster": cluster}],
            "users": [{"name": _NAME, "user": {"tokenFile": f"{_TOKEN}/token"}}],
            "contexts": [{"name": "local", "context": {"cluster": "local", "user": _NAME}}],
            "current-context": "local",
        }
    )


def _pod(image: str) -> Document:
    return {
        "hostNetwork": True,
        "securityContext": SECCOMP,
        "priorityClassName": "system-node-critical",
        "serviceAccountName": _NAME,
        "tolerations": TOLERATE_ALL,
        "affinity": REAL_NODES,
        "containers": [
            {
                "name": _NAME,
                "image": image,
                "command": [
                    "/usr/local/bin/kube-proxy",
                    "--config=/etc/kube-proxy/config.conf",
                    "--hostname-override=$(NODE_NAME)",
                ],
                "env": [field("NODE_NAME", "spec.nodeName")],
                "resources": requests("20m", "40Mi"),
                "securityContext": {"privileged": True},
                "volumeMounts": [
                    mount("config", "/etc/kube-proxy", read_only=True),
                    mount("modules", "/lib/modules", read_only=True),
                    mount("xtables-lock", "/run/xtables.lock"),
                ],
            }
        ],
        "volumes": [
            {"name": "config", "configMap": {"name": _NAME}},
            host_path("modules", "/lib/modules"),
            host_path("xtables-lock", "/run/xtables.lock", "FileOrCreate"),
        ],
    }
