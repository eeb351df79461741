"""Pods of Calico: the agent of each node, its controllers, and Typha."""

from __future__ import annotations

import json
from collections.abc import Mapping

from stacks.config.spec import Spec
from stacks.documents.kubernetes_objects import (
    LOCAL_API,
    REAL_NODES,
    SECCOMP,
    TOLERATE_ALL,
    Document,
    config_annotation,
    field,
    host_path,
    meta,
    mount,
    requests,
)
from stacks.networks.network import Wanted

NAMESPACE = "kube-system"
NODE = "calico-node"
CNI = "calico-cni-plugin"
CONTROLLERS = "calico-kube-controllers"
TYPHA = "calico-typha"
TYPHA_PORT = 5473
TYPHA_HEALTH_PORT = 9098
CONFLIST = "10-calico.conflist"

_MASTERS = {"node-role.kubernetes.io/control-plane": ""}
# kube-ha's own, of a version that nodes have already.
_PLUGINS_OF_OTHERS = "bandwidth,flannel,host-local,loopback,portmap,tuning"


def image(name: str, wanted: Wanted) -> str:
    """Reference of one of Calico's images, as artifacts/lock.yaml has it."""
    return f"quay.io/calico/{name}:v{wanted.versions.calico}"


def agent(wanted: Wanted) -> Document:
    """DaemonSet calico-node: Felix, and BIRD where packets go by BGP."""
    labels = {"k8s-app": NODE}
    data = _conflist(wanted.spec)
    env = _environment(wanted.spec)
    annotations = {
        **config_annotation({"conflist": data, "env": json.dumps(env)}),
        **wanted.annotations,
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": meta(NODE, NAMESPACE, **labels),
        "spec": {
            "selector": {"matchLabels": labels},
            "updateStrategy": {**wanted.rolling},
            "template": {
                "metadata": {"labels": labels, "annotations": annotations},
                "spec": {
                    "affinity": REAL_NODES,
                    "hostNetwork": True,
                    "priorityClassName": "system-node-critical",
                    "serviceAccountName": NODE,
                    # What is in the kernel stays: nothing is to be waited for.
                    "terminationGracePeriodSeconds": 0,
                    "tolerations": TOLERATE_ALL,
                    "initContainers": [_install(wanted, data)],
                    "containers": [_felix(wanted, env)],
                    "volumes": [
                        host_path("cni", "/etc/cni/net.d", "DirectoryOrCreate"),
                        host_path("cni-bin", "/opt/cni/bin", "DirectoryOrCreate"),
                        host_path("lib", "/var/lib/calico", "DirectoryOrCreate"),
                        host_path("log", "/var/log/calico/cni", "DirectoryOrCreate"),
                        host_path("modules", "/lib/modules"),
                        host_path("run", "/var/run/calico", "DirectoryOrCreate"),
                        host_path("xtables-lock", "/run/xtables.lock", "FileOrCreate"),
                    ],
                },
            },
        },
    }


def _conflist(spec: Spec) -> str:
    """What install writes for the container runtime; it fills in words in __ __."""
    calico: Document = {
        "type": "calico",
        "datastore_type": "kubernetes",
        "ipam": {"type": "calico-ipam"},
        "kubernetes": {"kubeconfig": "__KUBECONFIG_FILEPATH__"},
        "log_file_path": "/var/log/calico/cni/cni.log",
        "log_level": "info",
        # Without one it takes what Felix has found to fit the machine's interface.
        "mtu": spec.network.mtu or 0,
        "nodename": "__KUBERNETES_NODE_NAME__",
        "policy": {"type": "k8s"},
    }
    portmap: Document = {"type": "portmap", "snat": True, "capabilities": {"portMappings": True}}
    plugins = [calico, portmap]
    made = {"name": "k8s-pod-network", "cniVersion": "0.3.1", "plugins": plugins}
    return json.dumps(made, sort_keys=True)


def _install(wanted: Wanted, conflist: str) -> Document:
    return {
        "name": "install-cni",
        "image": image("cni", wanted),
        "command": ["/opt/cni/bin/install"],
        "env": [
            *LOCAL_API,
            field("KUBERNETES_NODE_NAME", "spec.nodeName"),
            *_values(
                {
                    "CNI_CONF_NAME": CONFLIST,
                    "CNI_NETWORK_CONFIG": conflist,
                    "SKIP_CNI_BINARIES": _PLUGINS_OF_OTHERS,
                    "SLEEP": "false",
                }
            ),
        ],
        "securityContext": {"privileged": True},
        "volumeMounts": [
            mount("cni", "/host/etc/cni/net.d"),
            mount("cni-bin", "/host/opt/cni/bin"),
        ],
    }


def _environment(spec: Spec) -> dict[str, str]:
    """What is asked for before the first object can be read; all else is in objects."""
    by_bgp = spec.network.backend == "bgp"
    typha = {"FELIX_TYPHAK8SSERVICENAME": TYPHA} if spec.network.typha else {}
    return {
        "CALICO_DISABLE_FILE_LOGGING": "true",
        "CALICO_NETWORKING_BACKEND": "bird" if by_bgp else "vxlan",
        "CLUSTER_TYPE": "k8s,bgp" if by_bgp else "k8s",
        "DATASTORE_TYPE": "kubernetes",
        "FELIX_HEALTHENABLED": "true",
        # The address by which other nodes know this one, with its interface's subnet.
        "IP": "autodetect",
        "IP_AUTODETECTION_METHOD": "kubernetes-internal-ip",
        # The pool is an object of this product.
        "NO_DEFAULT_POOLS": "true",
        "WAIT_FOR_DATASTORE": "true",
        **typha,
    }


def _felix(wanted: Wanted, env: Mapping[str, str]) -> Document:
    bird = ["-bird-live"], ["-bird-ready"]
    live, ready = bird if wanted.spec.network.backend == "bgp" else ([], [])
    return {
        "name": NODE,
        "image": image("node", wanted),
        "env": [*LOCAL_API, field("NODENAME", "spec.nodeName"), *_values(env)],
        "livenessProbe": {
            **_exec("/bin/calico-node", "-felix-live", *live),
            "failureThreshold": 6,
            "initialDelaySeconds": 10,
        },
        "readinessProbe": _exec("/bin/calico-node", "-felix-ready", *ready),
        "resources": requests("100m", "120Mi"),
        # It writes rules and routes of the kernel, and settings of interfaces.
        "securityContext": {"privileged": True},
        "volumeMounts": [
            # It renews the token in the CNI plugin's kubeconfig.
            mount("cni", "/host/etc/cni/net.d"),
            mount("lib", "/var/lib/calico"),
            mount("log", "/var/log/calico/cni", read_only=True),
            mount("modules", "/lib/modules", read_only=True),
            mount("run", "/var/run/calico"),
            mount("xtables-lock", "/run/xtables.lock"),
        ],
    }


def controllers(wanted: Wanted) -> Document:
    """Deployment of the one that takes addresses back; two would work against each other."""
    container: Document = {
        "name": CONTROLLERS,
        "image": image("kube-controllers", wanted),
        "env": [
            *LOCAL_API,
            *_values({"DATASTORE_TYPE": "kubernetes", "ENABLED_CONTROLLERS": "node"}),
        ],
        "livenessProbe": {
            **_exec("/usr/bin/check-status", "-l"),
            "failureThreshold": 6,
            "initialDelaySeconds": 10,
        },
        "readinessProbe": _exec("/usr/bin/check-status", "-r"),
        "resources": requests("20m", "60Mi"),
        "securityContext": {**_NO_RIGHTS, "runAsNonRoot": True},
    }
    strategy: Document = {"type": "Recreate"}
    return _of_masters(CONTROLLERS, CONTROLLERS, wanted, container, strategy, 1)


def typha(wanted: Wanted) -> tuple[Document, Document]:
    """Deployment, of no pods where nobody asks it, and the Service by which it is found.

    One on each master: with two ports of the machine there is no room for more.
    """
    container: Document = {
        "name": TYPHA,
        "image": image("typha", wanted),
        "env": [
            *LOCAL_API,
            *_values(
                {
                    "TYPHA_CONNECTIONREBALANCINGMODE": "kubernetes",
                    "TYPHA_DATASTORETYPE": "kubernetes",
                    "TYPHA_HEALTHENABLED": "true",
                    "TYPHA_LOGFILEPATH": "none",
                    "TYPHA_LOGSEVERITYSCREEN": "info",
                    "TYPHA_LOGSEVERITYSYS": "none",
                }
            ),
        ],
        "ports": [{"containerPort": TYPHA_PORT, "name": TYPHA, "protocol": "TCP"}],
        "livenessProbe": {**_get("/liveness"), "initialDelaySeconds": 30, "periodSeconds": 30},
        "readinessProbe": _get("/readiness"),
        "resources": requests("50m", "100Mi"),
        "securityContext": {**_NO_RIGHTS, "runAsNonRoot": True},
    }
    rolling: Document = {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1},
    }
    replicas = wanted.masters if wanted.spec.network.typha else 0
    deployment = _of_masters(TYPHA, NODE, wanted, container, rolling, replicas)
    port: Document = {"name": TYPHA, "port": TYPHA_PORT, "protocol": "TCP", "targetPort": TYPHA}
    service: Document = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": meta(TYPHA, NAMESPACE, **{"k8s-app": TYPHA}),
        "spec": {"ports": [port], "selector": {"k8s-app": TYPHA}},
    }
    return deployment, service


def _of_masters(
    name: str,
    account: str,
    wanted: Wanted,
    container: Document,
    strategy: Document,
    replicas: int,
) -> Document:
    labels = {"k8s-app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": meta(name, NAMESPACE, **labels),
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "strategy": strategy,
            "template": {
                "metadata": {"labels": labels, "annotations": {**wanted.annotations}},
                "spec": {
                    # By the machine's own door to the API: pods may have no network yet.
                    "hostNetwork": True,
                    "nodeSelector": _MASTERS,
                    "priorityClassName": "system-cluster-critical",
                    "securityContext": SECCOMP,
                    "serviceAccountName": account,
                    # Not of what evicts: from a dead master they go to another one.
                    "tolerations": [{"key": key, **_ANY} for key in _TAINTS],
                    "containers": [container],
                },
            },
        },
    }


# Of masters, and of nodes that have no pod network yet.
_TAINTS = (
    "node-role.kubernetes.io/control-plane",
    "node.cloudprovider.kubernetes.io/uninitialized",
    "node.kubernetes.io/network-unavailable",
    "node.kubernetes.io/not-ready",
)
_ANY: Document = {"operator": "Exists", "effect": "NoSchedule"}
_NO_RIGHTS: Document = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


def _values(env: Mapping[str, str]) -> list[Document]:
    return [{"name": name, "value": value} for name, value in sorted(env.items())]


def _exec(*command: str) -> Document:
    return {"exec": {"command": [*command]}, "periodSeconds": 10, "timeoutSeconds": 10}


def _get(path: str) -> Document:
    asked = {"host": "127.0.0.1", "path": path, "port": TYPHA_HEALTH_PORT}
    return {"httpGet": asked, "periodSeconds": 10, "timeoutSeconds": 10}
