"""Cilium: pods of all nodes reach each other by BPF programs, which enforce NetworkPolicies."""

from __future__ import annotations

from collections.abc import Mapping

from stacks.config.network import NetworkSpec
from stacks.documents.admission import policy
from stacks.documents.kubernetes_objects import (
    LOCAL_API,
    REAL_NODES,
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
from stacks.networks import cilium_rights
from stacks.networks.network import Backend, Tunnel, Wanted, never_smooth, no_marks, no_problems

_NAMESPACE = "kube-system"
_AGENT = "cilium"
_OPERATOR = "cilium-operator"
_RIGHTS = "cilium-rights"
_CONFIG = "cilium-config"
_VXLAN_HEADERS = 50  # the agent takes them off the MTU it is told, for routes of pods
_HEALTH_PORT = 9879
_OPERATOR_PORT = 9234

PROVED = True
POLICIES = True
SETTINGS: tuple[str, ...] = ("mtu", "backend", "kube_proxy_replacement")
BACKENDS: Mapping[str, Backend] = {
    "vxlan": Backend(overhead=_VXLAN_HEADERS, modules=("vxlan",)),
    "native": Backend(needs_layer_2=True),
}
CUTS: Mapping[str, str] = {
    "backend": "until Cilium has restarted on every node, pods of nodes with the one cannot reach "
    "pods of nodes with the other",
}
TUNNELS: tuple[Tunnel, ...] = (Tunnel("vxlan", "udp", 8472, "Cilium's packets", ("vxlan",)),)
NAMESPACES: tuple[str, ...] = ()
IMAGES: tuple[str, ...] = (_AGENT,)
REGISTRIES: tuple[str, ...] = ("quay.io",)
MASTER_IMAGES: tuple[str, ...] = (_OPERATOR,)
ROLLOUTS: tuple[str, ...] = (
    f"{_NAMESPACE}/daemonset/{_OPERATOR}",
    f"{_NAMESPACE}/daemonset/{_AGENT}",
)
ADDONS: tuple[str, ...] = (_AGENT, _OPERATOR, _RIGHTS)
PRUNED: Mapping[str, str] = {}
problems, marks, is_smooth = no_problems, no_marks, never_smooth
# Of programs on every node, at 127.0.0.1.
LOCAL_PORTS: Mapping[int, str] = {_HEALTH_PORT: "the health of Cilium's agent"}
MASTER_LOCAL_PORTS: Mapping[int, str] = {_OPERATOR_PORT: "Cilium's operator"}
# Packets of pods come in by one interface, and their answers leave by another. The kernel takes the
# stricter of `all` and of the interface itself; systemd sets that of each new one. Upstream writes
# these into a file of its own (tools/sysctlfix).
SYSCTLS: Mapping[str, str] = {
    "-net.ipv4.conf.cilium_*.rp_filter": "0",
    "-net.ipv4.conf.lxc*.rp_filter": "0",
    "net.ipv4.conf.all.rp_filter": "0",
}
FILESYSTEMS: tuple[str, ...] = ("bpf", "cgroup2")

_ACCOUNT = f"system:serviceaccount:{_NAMESPACE}:{_AGENT}"
_CGROUPS = "/run/cilium/cgroupv2"
_CONFLIST = "05-cilium.conflist"
_CONFIG_FOLDER = "/tmp/cilium/config-map"  # noqa: S108 - of upstream's image

# Runs once for each pod, before the agent. Mounts are the machine's: they outlive the pod. After a
# boot (/run is empty) the node's conflist goes: no pod is to start before the agent is there.
# Another CNI plugin's file is put in place at once: the kubelet may start a pod at any time.
_PREPARE = f"""\
set -eu
first=/host/proc/1/ns
on_machine() {{ /usr/bin/nsenter --mount=$first/mnt --cgroup=$first/cgroup -- "$@"; }}
on_machine mountpoint -q /sys/fs/bpf || on_machine mount -t bpf bpf /sys/fs/bpf
on_machine mkdir -p {_CGROUPS}
on_machine mountpoint -q {_CGROUPS} || on_machine mount -t cgroup2 cgroup2 {_CGROUPS}
[ -e /var/run/cilium/state ] || rm -f /host/etc/cni/net.d/{_CONFLIST}
cp /opt/cni/bin/cilium-cni /host/opt/cni/bin/.cilium-cni.new
mv /host/opt/cni/bin/.cilium-cni.new /host/opt/cni/bin/cilium-cni
"""


def manifests(wanted: Wanted) -> Mapping[str, str]:
    """The agent of each node with the settings, the operator, and what both may do.

    The operator runs on masters alone: its account deletes what all nodes have made. It makes the
    CustomResourceDefinitions, which are in its image.
    """
    data = _settings(wanted)
    return {
        _AGENT: documents(
            config_map(_CONFIG, _NAMESPACE, data),
            _daemon_set(_AGENT, {"k8s-app": _AGENT}, wanted, data, _agent_pod(wanted)),
        ),
        _OPERATOR: documents(
            _daemon_set(_OPERATOR, {"io.cilium/app": "operator"}, wanted, data, _operator(wanted))
        ),
        _RIGHTS: documents(
            service_account(_AGENT, _NAMESPACE),
            cluster_role(_AGENT, cilium_rights.of_agent()),
            cluster_role_binding(_AGENT, _AGENT, _AGENT, _NAMESPACE),
            service_account(_OPERATOR, _NAMESPACE),
            cluster_role(_OPERATOR, cilium_rights.of_operator()),
            cluster_role_binding(_OPERATOR, _OPERATOR, _OPERATOR, _NAMESPACE),
        ),
    }


def _daemon_set(
    name: str, labels: Mapping[str, str], wanted: Wanted, data: Mapping[str, str], pod: Document
) -> Document:
    annotations = {**config_annotation(data), **wanted.annotations}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": meta(name, _NAMESPACE, **labels),
        "spec": {
            "selector": {"matchLabels": dict(labels)},
            "updateStrategy": {**wanted.rolling},
            "template": {
                "metadata": {"labels": dict(labels), "annotations": annotations},
                "spec": {
                    "hostNetwork": True,
                    "serviceAccountName": name,
                    "tolerations": TOLERATE_ALL,
                    **pod,
                },
            },
        },
    }


def _settings(wanted: Wanted) -> dict[str, str]:
    """Keys and values of ConfigMap cilium-config, as upstream names them."""
    network = wanted.spec.network
    return {
        "agent-health-port": str(_HEALTH_PORT),
        "bpf-root": "/sys/fs/bpf",
        "cgroup-root": _CGROUPS,
        "cluster-id": "0",
        "cluster-name": "default",
        "cni-exclusive": "true",
        "cni-log-file": "/var/run/cilium/cilium-cni.log",
        # It would watch this ConfigMap: another one restarts the pods here.
        "enable-dynamic-config": "false",
        "enable-endpoint-health-checking": "false",
        "enable-envoy-config": "false",
        "enable-gops": "false",
        "enable-health-checking": "false",
        "enable-hubble": "false",
        "enable-ipv4": "true",
        "enable-ipv4-masquerade": "true",
        "enable-ipv6": "false",
        "enable-l7-proxy": "false",
        "enable-policy": "default",
        "identity-allocation-mode": "crd",
        "ipam": "kubernetes",
        "k8s-require-ipv4-pod-cidr": "true",
        "operator-api-serve-addr": f"127.0.0.1:{_OPERATOR_PORT}",
        "remove-cilium-node-taints": "false",
        "set-cilium-node-taints": "false",
        "unmanaged-pod-watcher-interval": "0",
        "write-cni-conf-when-ready": f"/host/etc/cni/net.d/{_CONFLIST}",
        **_of_services(network),
        **_of_backend(network, wanted.spec.cluster.pod_cidr),
    }


def _of_services(network: NetworkSpec) -> dict[str, str]:
    if network.kube_proxy_replacement:
        # As kube-proxy answers there: load balancers of clouds ask.
        health = "0.0.0.0:10256"
        return {
            "kube-proxy-replacement": "true",
            "kube-proxy-replacement-healthz-bind-address": health,
        }
    # Beside kube-proxy ports of the machine for a pod (hostPort) are the portmap plugin's.
    return {"kube-proxy-replacement": "false", "cni-chaining-mode": "portmap"}


def _of_backend(network: NetworkSpec, pod_cidr: str) -> dict[str, str]:
    beneath = BACKENDS[network.backend].overhead
    mtu = {} if network.mtu is None else {"mtu": str(network.mtu + beneath)}
    if network.backend == "vxlan":
        return {"routing-mode": "tunnel", "tunnel-protocol": "vxlan", **mtu}
    return {
        "routing-mode": "native",
        "auto-direct-node-routes": "true",
        "ipv4-native-routing-cidr": pod_cidr,
        **mtu,
    }


_ENVIRONMENT = [
    *LOCAL_API,
    field("K8S_NODE_NAME", "spec.nodeName"),
    field("CILIUM_K8S_NAMESPACE", "metadata.namespace"),
]
_SETTINGS_MOUNT = mount("config", _CONFIG_FOLDER, read_only=True)
_SETTINGS_VOLUME: Document = {"name": "config", "configMap": {"name": _CONFIG}}


def _agent_pod(wanted: Wanted) -> Document:
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
            host_path("cgroups", _CGROUPS, "DirectoryOrCreate"),
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
            mount("cgroups", _CGROUPS),
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
        "port": _HEALTH_PORT,
        "httpHeaders": [
            {"name": "brief", "value": "true"},
            # No restart while the API is down: packets are carried without it.
            {"name": "require-k8s-connectivity", "value": "false"},
        ],
    }
    return {"httpGet": get, "timeoutSeconds": 5}


def _operator(wanted: Wanted) -> Document:
    image = f"quay.io/cilium/operator-generic:v{wanted.versions.cilium}"
    get: Document = {"host": "127.0.0.1", "path": "/healthz", "port": _OPERATOR_PORT}
    return {
        "nodeSelector": {"node-role.kubernetes.io/control-plane": ""},
        "priorityClassName": "system-cluster-critical",
        "securityContext": SECCOMP,
        "containers": [
            {
                "name": _OPERATOR,
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


def policies() -> tuple[tuple[Document, Document], ...]:
    """Of CiliumNodes the one of its own node alone; what an identity means stays."""
    node = "authentication.kubernetes.io/node-name"
    nodes = policy(
        "kube-ha-cilium-nodes",
        rules=[("cilium.io", ["ciliumnodes", "ciliumnodes/status"], ["*"])],
        api_versions=["*"],
        of=f"request.userInfo.username == '{_ACCOUNT}'",
        variables={"either": "object == null ? oldObject : object"},
        validations={
            # API servers put it into the tokens of pods, and no node gets one of another's pod.
            f"has(request.userInfo.extra) && '{node}' in request.userInfo.extra && "
            f"request.userInfo.extra['{node}'] == [variables.either.metadata.name]": "Cilium's "
            "agent writes the CiliumNode alone that its pod runs on",
        },
    )
    identities = policy(
        "kube-ha-cilium-identities",
        rules=[("cilium.io", ["ciliumidentities"], ["UPDATE"])],
        api_versions=["*"],
        of=f"request.userInfo.username == '{_ACCOUNT}'",
        variables={},
        validations={
            "object['security-labels'] == oldObject['security-labels']": "Cilium's agent does not "
            "change which labels an identity stands for",
        },
    )
    return nodes, identities
