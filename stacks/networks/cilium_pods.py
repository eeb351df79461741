"""Pods of Cilium: the agent of each node, and the operator."""

from __future__ import annotations

from stacks.documents.kubernetes_objects import (
    LOCAL_API,
    REAL_NODES,
    SECCOMP,
    Document,
    field,
    host_path,
    mount,
    requests,
)
from stacks.networks.network import Wanted

AGENT = "cilium"
OPERATOR = "cilium-operator"
CONFIG = "cilium-config"
HEALTH_PORT = 9879
OPERATOR_PORT = 9234
CGROUPS = "/run/cilium/cgroupv2"
CONFLIST = "05-cilium.conflist"
_CONFIG_FOLDER = "/tmp/cilium/config-map"  # noqa: S108 - of upstream's image

# Runs once for each pod, before the agent. Mounts are the machine's: they outlive the pod. After a
# boot (/run is empty) the node's conflist goes: no pod is to start before the agent is there.
# Another CNI plugin's file is put in place at once: the kubelet may start a pod at any time.
_PREPARE = f"""\
set -eu
first=/host/proc/1/ns
on_machine() {{ /usr/bin/nsenter --mount=$first/mnt --cgroup=$first/cgroup -- "$@"; }}
on_machine mountpoint -q /sys/fs/bpf || on_machine mount -t bpf bpf /sys/fs/bpf
on_machine mkdir -p {CGROUPS}
on_machine mountpoint -q {CGROUPS} || on_machine mount -t cgroup2 cgroup2 {CGROUPS}
[ -e /var/run/cilium/state ] || rm -f /host/etc/cni/net.d/{CONFLIST}
cp /opt/cni/bin/cilium-cni /host/opt/cni/bin/.cilium-cni.new
mv /host/opt/cni/bin/.cilium-cni.new /host/opt/cni/bin/cilium-cni
"""

_ENVIRONMENT = [
    *LOCAL_API,
    field("K8S_NODE_NAME", "spec.nodeName"),
    field("CILIUM_K8S_NAMESPACE", "metadata.namespace"),
]
_SETTINGS_MOUNT = mount("config", _CONFIG_FOLDER, read_only=True)
_SETTINGS_VOLUME: Document = {"name": "config", "configMap": {"name": CONFIG}}


def agent(wanted: Wanted) -> Document:
    """Of the DaemonSet that carries packets."""
    image = f"quay.io/cilium/cilium:v{wanted.versions.cilium}"
    return {
        "affinity": REAL_NODES,
        "priorityClassName": "system-node-critical",
        # As long as upstream's chart gives it: no state is written at the end.
        "terminationGracePeriodSeconds": 1,
        "initContainers": [
            {
                "name": "prepare",
                "image": image,
                "command": ["sh", "-c", _PREPARE],
                "securityContext": {"privileged": True},
                "volumeMounts": [
                    mount("proc", "/host/proc", read_only=True),
                    mount("cni", "/host/etc/cni/net.d"),
                    mount("cni-bin", "/host/opt/cni/bin"),
                    mount("run", "/var/run/cilium"),
                ],
            }
        ],
        "containers": [_agent_container(image)],
        "volumes": [
            _SETTINGS_VOLUME,
            host_path("bpf", "/sys/fs/bpf", "DirectoryOrCreate"),
            host_path("cgroups", CGROUPS, "DirectoryOrCreate"),
            host_path("cni", "/etc/cni/net.d", "DirectoryOrCreate"),
            host_path("cni-bin", "/opt/cni/bin", "DirectoryOrCreate"),
            host_path("modules", "/lib/modules"),
            host_path("netns", "/var/run/netns", "DirectoryOrCreate"),
            host_path("proc", "/proc"),
            host_path("run", "/var/run/cilium", "DirectoryOrCreate"),
            host_path("xtables-lock", "/run/xtables.lock", "FileOrCreate"),
        ],
    }


def _agent_container(image: str) -> Document:
    return {
        "name": "cilium-agent",
        "image": image,
        "command": ["cilium-agent"],
        "args": [f"--config-dir={_CONFIG_FOLDER}"],
        "env": _ENVIRONMENT,
        # It compiles its programs at the first start: minutes on a busy machine.
        "startupProbe": {**_healthy(), "failureThreshold": 150, "periodSeconds": 2},
        "livenessProbe": {**_healthy(), "failureThreshold": 10, "periodSeconds": 30},
        "readinessProbe": {**_healthy(), "failureThreshold": 3, "periodSeconds": 5},
        "resources": requests("100m", "150Mi"),
        # It loads programs into the kernel, and writes settings of interfaces.
        "securityContext": {"privileged": True},
        "volumeMounts": [
            _SETTINGS_MOUNT,
            {**mount("bpf", "/sys/fs/bpf"), "mountPropagation": "HostToContainer"},
            mount("cgroups", CGROUPS),
            mount("cni", "/host/etc/cni/net.d"),
            mount("modules", "/lib/modules", read_only=True),
            {**mount("netns", "/var/run/cilium/netns"), "mountPropagation": "HostToContainer"},
            mount("run", "/var/run/cilium"),
            mount("xtables-lock", "/run/xtables.lock"),
        ],
    }


def _healthy() -> Document:
    get = {
        "host": "127.0.0.1",
        "path": "/healthz",
        "port": HEALTH_PORT,
        "httpHeaders": [
            {"name": "brief", "value": "true"},
            # No restart while the API is down: packets are carried without it.
            {"name": "require-k8s-connectivity", "value": "false"},
        ],
    }
    return {"httpGet": get, "timeoutSeconds": 5}


def operator(wanted: Wanted) -> Document:
    """Of the DaemonSet on masters that looks after identities and node resources."""
    image = f"quay.io/cilium/operator-generic:v{wanted.versions.cilium}"
    get: Document = {"host": "127.0.0.1", "path": "/healthz", "port": OPERATOR_PORT}
    return {
        "nodeSelector": {"node-role.kubernetes.io/control-plane": ""},
        "priorityClassName": "system-cluster-critical",
        "securityContext": SECCOMP,
        "containers": [
            {
                "name": OPERATOR,
                "image": image,
                "command": ["cilium-operator-generic"],
                "args": [f"--config-dir={_CONFIG_FOLDER}"],
                "env": _ENVIRONMENT,
                "livenessProbe": {"httpGet": get, "initialDelaySeconds": 60, "timeoutSeconds": 3},
                "readinessProbe": {"httpGet": get, "periodSeconds": 5, "timeoutSeconds": 3},
                "resources": requests("20m", "60Mi"),
                "securityContext": {
                    "allowPrivilegeEscalation": False,
                    "capabilities": {"drop": ["ALL"]},
                },
                "volumeMounts": [_SETTINGS_MOUNT],
            }
        ],
        "volumes": [_SETTINGS_VOLUME],
    }
