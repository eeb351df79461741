"""Flannel: pods of all nodes reach each other, by VXLAN or by routes."""

from __future__ import annotations

import json
from collections.abc import Mapping

from stacks.config.network import NetworkSpec
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
from stacks.networks import own_node
from stacks.networks.network import Backend, Tunnel, Wanted, never_smooth, no_marks, no_problems

_NAMESPACE = "kube-flannel"
_NAME = "flannel"
_VXLAN_HEADERS = 50  # flanneld takes them off the MTU it is told

PROVED = True
OPEN = False
POLICIES = False
DEVIATES: Mapping[str, str] = {}
SETTINGS: tuple[str, ...] = ("mtu", "backend")
BACKENDS: Mapping[str, Backend] = {
    "vxlan": Backend(overhead=_VXLAN_HEADERS, modules=("vxlan",)),
    "host-gw": Backend(needs_layer_2=True),
}
CUTS: Mapping[str, str] = {
    "backend": "until flannel has restarted on every node, pods of nodes with the one cannot reach "
    "pods of nodes with the other",
}
TUNNELS: tuple[Tunnel, ...] = (Tunnel("vxlan", "udp", 8472, "flannel's packets", ("vxlan",)),)
LOCAL_PORTS: Mapping[int, str] = {}
MASTER_LOCAL_PORTS: Mapping[int, str] = {}
SYSCTLS: Mapping[str, str] = {}
FILESYSTEMS: tuple[str, ...] = ()
NAMESPACES: tuple[str, ...] = (_NAMESPACE,)
IMAGES: tuple[str, ...] = (_NAME,)
REGISTRIES: tuple[str, ...] = ()
MASTER_IMAGES: tuple[str, ...] = ()
ROLLOUTS: tuple[str, ...] = (f"{_NAMESPACE}/daemonset/{_NAME}",)
ADDONS: tuple[str, ...] = (_NAME,)
PRUNED: Mapping[str, str] = {}
DEFINED_BY: Mapping[str, str] = {}
problems, marks, is_smooth = no_problems, no_marks, never_smooth

# Its part of a Node, and its account.
_ANNOTATIONS = "flannel.alpha.coreos.com/"
_ACCOUNT = f"system:serviceaccount:{_NAMESPACE}:{_NAME}"

# Runs once for each pod, before flanneld. What an earlier flanneld said about the node's network
# may be out of date: the node may have left and come back with another range. After a boot (/run
# is empty) the node's conflist goes too: no pod is to start before flanneld has set up the routes.
# Only the file goes, not the folder: containerd ends without it.
_FORGET = """\
set -eu
cd /run/flannel
[ -e subnet.env ] || rm -f /etc/cni/net.d/10-kube-ha.conflist
rm -f subnet.env
"""

# The container's command. Beside flanneld, it waits for the subnet.env that flanneld writes when it
# holds its lease and its device is there. No postStart hook: a kubelet that restarts while a hook
# runs takes it for done, and the node stays without a network.
_RUN = """\
set -eu
conflist() {
  umask 077
  until [ -s /run/flannel/subnet.env ]; do sleep 0.25; done
  . /run/flannel/subnet.env
@MTU@  # FLANNEL_SUBNET is the address of the bridge, the first of the range that host-local wants.
  host=${FLANNEL_SUBNET%/*}
  range=${host%.*}.$((${host##*.} - 1))/${FLANNEL_SUBNET#*/}
  cat >/etc/cni/net.d/.10-kube-ha.new <<END
{"cniVersion": "1.0.0", "name": "kube-ha", "plugins": [
  {"type": "bridge", "bridge": "cni0", "mtu": $FLANNEL_MTU,
   "isDefaultGateway": true, "hairpinMode": true, "ipMasq": false,
   "ipam": {"type": "host-local", "dataDir": "/run/cni/kube-ha",
            "ranges": [[{"subnet": "$range"}]]}},
  {"type": "portmap", "capabilities": {"portMappings": true}}]}
END
  mv /etc/cni/net.d/.10-kube-ha.new /etc/cni/net.d/10-kube-ha.conflist
}
conflist &
exec /opt/bin/flanneld "$@"
"""

# flanneld leaves a device that exists as it is, and knows no MTU for host-gw.
_DEVICE_MTU = "  ip link set dev flannel.1 mtu {mtu}\n"
_BRIDGE_MTU = "  FLANNEL_MTU={mtu}\n"


def manifests(wanted: Wanted) -> Mapping[str, str]:
    """Its one add-on."""
    return {_NAME: _manifest(wanted)}


def _manifest(wanted: Wanted) -> str:
    """Namespace, rights, config and DaemonSet of flannel.

    The CNI config is made from flanneld's answer beside it, with the standard bridge plugin: a node
    is Ready only when its flanneld works. Masquerading is flanneld's
    (-ip-masq): the bridge plugin would hide the sender of traffic between nodes.
    """
    network = wanted.spec.network
    config = {
        "Network": wanted.spec.cluster.pod_cidr,
        "EnableNFTables": network.proxy_mode == "nftables",
        "Backend": _backend(network),
    }
    data = {"net-conf.json": json.dumps(config, indent=2) + "\n"}
    privileged = {"pod-security.kubernetes.io/enforce": "privileged"}
    return documents(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": meta(_NAMESPACE, **privileged)},
        service_account(_NAME, _NAMESPACE),
        cluster_role(_NAME, _rights()),
        cluster_role_binding(_NAME, _NAME, _NAME, _NAMESPACE),
        config_map(_NAME, _NAMESPACE, data),
        {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": meta(_NAME, _NAMESPACE, app=_NAME),
            "spec": {
                "selector": {"matchLabels": {"app": _NAME}},
                "updateStrategy": {**wanted.rolling},
                "template": {
                    "metadata": {
                        "labels": {"app": _NAME},
                        "annotations": {**config_annotation(data), **wanted.annotations},
                    },
                    "spec": _pod(
                        f"ghcr.io/flannel-io/flannel:v{wanted.versions.flannel}", _run(network)
                    ),
                },
            },
        },
    )


def _backend(network: NetworkSpec) -> Document:
    if network.mtu is None or network.backend != "vxlan":
        return {"Type": network.backend}
    return {"Type": network.backend, "MTU": network.mtu + _VXLAN_HEADERS}


def _run(network: NetworkSpec) -> str:
    lines = ""
    if network.mtu is not None:
        lines = (_DEVICE_MTU if network.backend == "vxlan" else _BRIDGE_MTU).format(mtu=network.mtu)
    return _RUN.replace("@MTU@", lines)


def _rights() -> list[Document]:
    return [
        {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": [""], "resources": ["nodes/status"], "verbs": ["patch"]},
    ]


_OWN_FILES = [mount("run", "/run/flannel"), mount("cni", "/etc/cni/net.d")]


def _pod(image: str, run: str) -> Document:
    return {
        "hostNetwork": True,
        "securityContext": SECCOMP,
        "priorityClassName": "system-node-critical",
        "serviceAccountName": _NAME,
        "tolerations": TOLERATE_ALL,
        "affinity": REAL_NODES,
        "initContainers": [
            {
                "name": "forget",
                "image": image,
                "command": ["/bin/sh", "-c", _FORGET],
                "securityContext": {**_rights_of_root(), "readOnlyRootFilesystem": True},
                "volumeMounts": _OWN_FILES,
            }
        ],
        "containers": [_flanneld(image, run)],
        "volumes": [
            host_path("run", "/run/flannel", "DirectoryOrCreate"),
            host_path("cni", "/etc/cni/net.d", "DirectoryOrCreate"),
            host_path("xtables-lock", "/run/xtables.lock", "FileOrCreate"),
            {"name": "config", "configMap": {"name": _NAME}},
        ],
    }


def _flanneld(image: str, run: str) -> Document:
    return {
        "name": "flanneld",
        "image": image,
        # The word after the script is its $0.
        "command": ["/bin/sh", "-c", run, "flanneld"],
        # The address by which other nodes know this one, on whichever interface it is.
        "args": ["--ip-masq", "--kube-subnet-mgr", "--iface=$(NODE_ADDRESS)"],
        "env": [
            *LOCAL_API,
            field("NODE_NAME", "spec.nodeName"),
            field("NODE_ADDRESS", "status.hostIP"),
        ],
        "readinessProbe": {
            "exec": {"command": ["test", "-s", "/etc/cni/net.d/10-kube-ha.conflist"]},
            "periodSeconds": 2,
        },
        "resources": requests("20m", "40Mi"),
        # Its iptables writes into the root file system which kind of rules the machine has.
        "securityContext": _rights_of_root("NET_ADMIN", "NET_RAW"),
        "volumeMounts": [
            *_OWN_FILES,
            mount("config", "/etc/kube-flannel", read_only=True),
            mount("xtables-lock", "/run/xtables.lock"),
        ],
    }


def _rights_of_root(*capabilities: str) -> Document:
    """Root of a container, with these of its rights alone."""
    kept: Document = {"add": list(capabilities)} if capabilities else {}
    return {"allowPrivilegeEscalation": False, "capabilities": {**kept, "drop": ["ALL"]}}


def policies() -> tuple[tuple[Document, Document], ...]:
    """Of the Node that its pod runs on, its own annotations and one condition."""
    return (own_node.policy_of("kube-ha-flannel", _ACCOUNT, _NAME, _ANNOTATIONS),)
