"""Cilium: pods of all nodes reach each other by BPF programs, which enforce NetworkPolicies."""

from __future__ import annotations

from collections.abc import Mapping

from stacks.config.network import NetworkSpec
from stacks.documents.admission import policy
from stacks.documents.kubernetes_objects import (
    TOLERATE_ALL,
    Document,
    cluster_role,
    cluster_role_binding,
    config_annotation,
    config_map,
    meta,
    service_account,
)
from stacks.documents.yaml_text import documents
from stacks.networks import cilium_pods, cilium_rights
from stacks.networks.cilium_pods import (
    AGENT,
    CGROUPS,
    CONFIG,
    CONFLIST,
    HEALTH_PORT,
    OPERATOR,
    OPERATOR_PORT,
)
from stacks.networks.network import Backend, Tunnel, Wanted, never_smooth, no_marks, no_problems

_NAMESPACE = "kube-system"
_RIGHTS = "cilium-rights"
_VXLAN_HEADERS = 50  # the agent takes them off the MTU it is told, for routes of pods

PROVED = True
OPEN = False
POLICIES = True
_PODS_BY_ADDRESS = (
    "an ipBlock of Cilium means no pods of the cluster, whatever their addresses "
    "(docs.cilium.io, Network Policy, Caveats)"
)
DEVIATES: Mapping[str, str] = dict.fromkeys(
    (
        "should allow egress access to server in CIDR block",
        "should enforce except clause while egress access to server in CIDR block",
        "should ensure an IP overlapping both IPBlock.CIDR and IPBlock.Except is allowed",
    ),
    _PODS_BY_ADDRESS,
)
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
IMAGES: tuple[str, ...] = (AGENT,)
REGISTRIES: tuple[str, ...] = ("quay.io",)
MASTER_IMAGES: tuple[str, ...] = (OPERATOR,)
ROLLOUTS: tuple[str, ...] = (
    f"{_NAMESPACE}/daemonset/{OPERATOR}",
    f"{_NAMESPACE}/daemonset/{AGENT}",
)
ADDONS: tuple[str, ...] = (AGENT, OPERATOR, _RIGHTS)
PRUNED: Mapping[str, str] = {}
DEFINED_BY: Mapping[str, str] = {}
problems, marks, is_smooth = no_problems, no_marks, never_smooth
# Of programs on every node, at 127.0.0.1.
LOCAL_PORTS: Mapping[int, str] = {HEALTH_PORT: "the health of Cilium's agent"}
MASTER_LOCAL_PORTS: Mapping[int, str] = {OPERATOR_PORT: "Cilium's operator"}
# Packets of pods come in by one interface, and their answers leave by another. The kernel takes the
# stricter of `all` and of the interface itself; systemd sets that of each new one. Upstream writes
# these into a file of its own (tools/sysctlfix).
SYSCTLS: Mapping[str, str] = {
    "-net.ipv4.conf.cilium_*.rp_filter": "0",
    "-net.ipv4.conf.lxc*.rp_filter": "0",
    "net.ipv4.conf.all.rp_filter": "0",
}
FILESYSTEMS: tuple[str, ...] = ("bpf", "cgroup2")

_ACCOUNT = f"system:serviceaccount:{_NAMESPACE}:{AGENT}"


def manifests(wanted: Wanted) -> Mapping[str, str]:
    """The agent of each node with the settings, the operator, and what both may do.

    The operator runs on masters alone: its account deletes what all nodes have made. It makes the
    CustomResourceDefinitions, which are in its image.
    """
    data = _settings(wanted)
    return {
        AGENT: documents(
            config_map(CONFIG, _NAMESPACE, data),
            _daemon_set(AGENT, {"k8s-app": AGENT}, wanted, data, cilium_pods.agent(wanted)),
        ),
        OPERATOR: documents(
            _daemon_set(
                OPERATOR, {"io.cilium/app": "operator"}, wanted, data, cilium_pods.operator(wanted)
            )
        ),
        _RIGHTS: documents(
            service_account(AGENT, _NAMESPACE),
            cluster_role(AGENT, cilium_rights.of_agent()),
            cluster_role_binding(AGENT, AGENT, AGENT, _NAMESPACE),
            service_account(OPERATOR, _NAMESPACE),
            cluster_role(OPERATOR, cilium_rights.of_operator()),
            cluster_role_binding(OPERATOR, OPERATOR, OPERATOR, _NAMESPACE),
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
        "agent-health-port": str(HEALTH_PORT),
        "bpf-root": "/sys/fs/bpf",
        "cgroup-root": CGROUPS,
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
        "operator-api-serve-addr": f"127.0.0.1:{OPERATOR_PORT}",
        "remove-cilium-node-taints": "false",
        "set-cilium-node-taints": "false",
        "unmanaged-pod-watcher-interval": "0",
        "write-cni-conf-when-ready": f"/host/etc/cni/net.d/{CONFLIST}",
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
