"""Calico's own objects: what its CustomResourceDefinitions are, and what the config says in them.

Kinds, scopes and fields are those of manifests/crds.yaml of Calico 3.32. A schema here has the
types of the fields that are set; the others are kept as they come. Upstream's schemas are 300 KB,
more than a command takes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from stacks.config.network import BgpPeerSpec, NetworkSpec
from stacks.config.spec import Spec
from stacks.documents.kubernetes_objects import Document, meta

GROUP = "crd.projectcalico.org"
_API = f"{GROUP}/v1"
_ZONE = "topology.kubernetes.io/zone"
# A kubelet may not write labels of this kind: else every worker could make itself a reflector.
REFLECTOR = "node-restriction.kubernetes.io/route-reflector"

_TEXT: Document = {"type": "string"}
_NUMBER: Document = {"type": "integer", "format": "int32"}
_AS_NUMBER: Document = {"type": "integer", "format": "int64"}
_TRUTH: Document = {"type": "boolean"}

# Fields of `spec` that the product sets, by kind.
FIELDS: Mapping[str, Mapping[str, Document]] = {
    "IPPool": {
        "allowedUses": {"type": "array", "items": _TEXT},
        "blockSize": _NUMBER,
        "cidr": _TEXT,
        "ipipMode": {**_TEXT, "enum": ["Never", "Always", "CrossSubnet"]},
        "natOutgoing": _TRUTH,
        "nodeSelector": _TEXT,
        "vxlanMode": {**_TEXT, "enum": ["Never", "Always", "CrossSubnet"]},
    },
    "FelixConfiguration": {
        "defaultEndpointToHostAction": _TEXT,
        "ipv6Support": _TRUTH,
        "logSeverityScreen": _TEXT,
        "nftablesMode": {**_TEXT, "enum": ["Disabled", "Enabled", "Auto"]},
        "reportingInterval": _TEXT,
        "usageReportingEnabled": _TRUTH,
        "vxlanMTU": {"type": "integer"},
    },
    "BGPConfiguration": {
        "asNumber": _AS_NUMBER,
        "logSeverityScreen": _TEXT,
        "nodeToNodeMeshEnabled": _TRUTH,
    },
    "BGPPeer": {
        "asNumber": _AS_NUMBER,
        "nodeSelector": _TEXT,
        "password": {
            "type": "object",
            "properties": {
                "secretKeyRef": {
                    "type": "object",
                    "properties": {"key": _TEXT, "name": _TEXT, "optional": _TRUTH},
                    "required": ["key"],
                }
            },
        },
        "peerIP": _TEXT,
        "peerSelector": _TEXT,
    },
}
_PLURALS: Mapping[str, str] = {
    "BGPConfiguration": "bgpconfigurations",
    "BGPFilter": "bgpfilters",
    "BGPPeer": "bgppeers",
    "BlockAffinity": "blockaffinities",
    "CalicoNodeStatus": "caliconodestatuses",
    "ClusterInformation": "clusterinformations",
    "FelixConfiguration": "felixconfigurations",
    "IPAMBlock": "ipamblocks",
    "IPAMConfig": "ipamconfigs",
    "IPAMHandle": "ipamhandles",
    "IPPool": "ippools",
    "IPReservation": "ipreservations",
    "KubeControllersConfiguration": "kubecontrollersconfigurations",
    "GlobalNetworkPolicy": "globalnetworkpolicies",
    "GlobalNetworkSet": "globalnetworksets",
    "HostEndpoint": "hostendpoints",
    "NetworkPolicy": "networkpolicies",
    "NetworkSet": "networksets",
    "StagedGlobalNetworkPolicy": "stagedglobalnetworkpolicies",
    "StagedKubernetesNetworkPolicy": "stagedkubernetesnetworkpolicies",
    "StagedNetworkPolicy": "stagednetworkpolicies",
    "Tier": "tiers",
}
_NAMESPACED = frozenset(
    {"NetworkPolicy", "NetworkSet", "StagedKubernetesNetworkPolicy", "StagedNetworkPolicy"}
)
_WITH_STATUS = frozenset({"KubeControllersConfiguration"})
_ANYTHING: Document = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def definitions() -> Iterator[Document]:
    """CustomResourceDefinitions of what programs of Calico read and write, and users may."""
    yield from (_definition(kind) for kind in _PLURALS if kind not in FIELDS)


def definitions_of_settings() -> Iterator[Document]:
    """Those of what the config says; a command has no room for all."""
    yield from (_definition(kind) for kind in FIELDS)


def _definition(kind: str) -> Document:
    plural = _PLURALS[kind]
    typed = {**_ANYTHING, "properties": dict(FIELDS.get(kind, {}))}
    schema = {**_ANYTHING, **({"properties": {"spec": typed}} if kind in FIELDS else {})}
    version: Document = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        **({"subresources": {"status": {}}} if kind in _WITH_STATUS else {}),
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": meta(f"{plural}.{GROUP}"),
        "spec": {
            "group": GROUP,
            "names": {"kind": kind, "plural": plural},
            "scope": "Namespaced" if kind in _NAMESPACED else "Cluster",
            "versions": [version],
        },
    }


def settings(spec: Spec, addon: str) -> Iterator[Document]:
    """What the config says, as objects that Calico's programs watch; peers are marked as `addon`'s.

    Those go with the config.
    """
    mark = {"kube-ha.io/part-of": addon}
    network = spec.network
    yield _object("IPPool", "default-ipv4-ippool", _pool(spec))
    yield _object("FelixConfiguration", "default", _felix(network))
    yield _object(
        "BGPConfiguration",
        "default",
        {
            "asNumber": network.bgp_as_number,
            "logSeverityScreen": "Info",
            "nodeToNodeMeshEnabled": network.bgp_topology.startswith("mesh"),
        },
    )
    if network.backend != "bgp":
        return
    if network.bgp_topology.endswith("reflectors"):
        # Of reflectors among each other, too.
        reflectors: Document = {"nodeSelector": "all()", "peerSelector": f"has({REFLECTOR})"}
        yield _object("BGPPeer", "route-reflectors", reflectors, **mark)
    for peer in network.bgp_peers:
        name = f"router-{peer.address.replace('.', '-')}"
        yield _object("BGPPeer", name, _router(peer), **mark)


def _object(kind: str, name: str, spec: Document, **labels: str) -> Document:
    return {"apiVersion": _API, "kind": kind, "metadata": meta(name, **labels), "spec": spec}


def _pool(spec: Spec) -> Document:
    vxlan = {"vxlan": "Always", "vxlan-across-subnets": "CrossSubnet", "bgp": "Never"}
    return {
        "allowedUses": ["Workload", "Tunnel"],
        "blockSize": spec.network.block_size,
        "cidr": spec.cluster.pod_cidr,
        "ipipMode": "Never",
        "natOutgoing": True,
        "nodeSelector": "all()",
        "vxlanMode": vxlan[spec.network.backend],
    }


def _felix(network: NetworkSpec) -> Document:
    mtu: Document = {} if network.mtu is None else {"vxlanMTU": network.mtu}
    return {
        # Of pods to their own node: the API server of a master is there.
        "defaultEndpointToHostAction": "Accept",
        "ipv6Support": False,
        # These two are set, or each node would set them, and its account would have to write here.
        "logSeverityScreen": "Info",
        "reportingInterval": "0s",
        # By the tables that kube-proxy uses: rules of both kinds would be asked in no known order.
        "nftablesMode": "Enabled" if network.proxy_mode == "nftables" else "Disabled",
        "usageReportingEnabled": False,
        **mtu,
    }


def _router(peer: BgpPeerSpec) -> Document:
    key = {"name": peer.password_secret, "key": "password"}
    password = {"password": {"secretKeyRef": key}} if peer.password_secret else {}
    return {
        "asNumber": peer.as_number,
        "nodeSelector": _in_zones(peer.zones),
        "peerIP": peer.address,
        **password,
    }


def _in_zones(zones: Sequence[str]) -> str:
    """A selector, as Calico reads it."""
    if not zones:
        return "all()"
    return f"{_ZONE} in {{{', '.join(repr(zone) for zone in zones)}}}"
