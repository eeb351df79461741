"""Calico: pods of all nodes reach each other by BGP or VXLAN, and policies are enforced."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from stacks.config.network import NetworkSpec
from stacks.config.problems import Problem
from stacks.config.spec import Spec
from stacks.documents.kubernetes_objects import (
    Document,
    cluster_role,
    cluster_role_binding,
    meta,
    service_account,
)
from stacks.documents.yaml_text import documents
from stacks.networks import calico_objects, calico_pods, calico_rights, own_node
from stacks.networks.network import Backend, Marks, Member, Tunnel, Wanted

_NAMESPACE = calico_pods.NAMESPACE
_VXLAN_HEADERS = 50
_OVER_VXLAN = ("vxlan", "vxlan-across-subnets")
_SETTINGS = "calico-settings"
_CUT = (
    "sessions end before others are there, and for seconds pods of different nodes do not reach "
    "each other"
)
# The mesh is an object, and reflectors are marks of Nodes.
_ENDS_FIRST = (
    "what was ends with the add-ons, what is to be is there with the list of nodes, at the end of "
    "the update, and until then pods of different nodes do not reach each other; go by "
    "mesh-and-reflectors, in an update of its own, or have bgpPeers before"
)
# From one to the other nobody loses all sessions.
_STEPS = frozenset(
    {
        *(("mesh", "mesh-and-reflectors"), ("mesh-and-reflectors", "mesh")),
        *(("mesh-and-reflectors", "reflectors"), ("reflectors", "mesh-and-reflectors")),
        *(("peers", "mesh"), ("peers", "mesh-and-reflectors")),
    }
)

PROVED = True
OPEN = False
POLICIES = True
DEVIATES: Mapping[str, str] = {}
SETTINGS: tuple[str, ...] = (
    *("mtu", "backend", "block_size", "typha"),
    *("bgp_topology", "bgp_reflector_pools", "bgp_as_number", "bgp_peers"),
)
BACKENDS: Mapping[str, Backend] = {
    "vxlan": Backend(overhead=_VXLAN_HEADERS, modules=("vxlan",)),
    "vxlan-across-subnets": Backend(
        overhead=_VXLAN_HEADERS, modules=("vxlan",), needs_layer_2=True
    ),
    "bgp": Backend(
        needs_layer_2=True,
        settings=("bgp_topology", "bgp_reflector_pools", "bgp_as_number", "bgp_peers"),
    ),
}
CUTS: Mapping[str, str] = {
    "backend": "until Calico has restarted on every node, pods of nodes with the one cannot reach "
    "pods of nodes with the other",
    "bgp_topology": _ENDS_FIRST,
    "bgp_reflector_pools": _CUT,
    "bgp_as_number": _CUT,
}
TUNNELS: tuple[Tunnel, ...] = (
    Tunnel("vxlan", "udp", 4789, "Calico's packets", backends=_OVER_VXLAN),
    Tunnel("bgp", "tcp", 179, "BGP of Calico", backends=("bgp",)),
    Tunnel("typha", "tcp", calico_pods.TYPHA_PORT, "Calico's Typha", to="master", setting="typha"),
)
LOCAL_PORTS: Mapping[int, str] = {9099: "the health of Calico's Felix"}
MASTER_LOCAL_PORTS: Mapping[int, str] = {
    calico_pods.TYPHA_HEALTH_PORT: "the health of Calico's Typha"
}
SYSCTLS: Mapping[str, str] = {}
FILESYSTEMS: tuple[str, ...] = ()
NAMESPACES: tuple[str, ...] = ()
IMAGES: tuple[str, ...] = ("calico-cni", "calico-node")
REGISTRIES: tuple[str, ...] = ("quay.io",)
MASTER_IMAGES: tuple[str, ...] = ("calico-kube-controllers", "calico-typha")
ROLLOUTS: tuple[str, ...] = (
    f"{_NAMESPACE}/deployment/{calico_pods.TYPHA}",
    f"{_NAMESPACE}/daemonset/{calico_pods.NODE}",
    f"{_NAMESPACE}/deployment/{calico_pods.CONTROLLERS}",
)
ADDONS: tuple[str, ...] = (
    *("calico-crds", "calico-crds-of-settings", "calico-kube-controllers", "calico-node"),
    *("calico-rights", _SETTINGS, "calico-typha"),
)
PRUNED: Mapping[str, str] = {_SETTINGS: f"bgppeers.{calico_objects.GROUP}"}
DEFINED_BY: Mapping[str, str] = {_SETTINGS: "calico-crds-of-settings"}

_ACCOUNT = f"system:serviceaccount:{_NAMESPACE}:{calico_pods.NODE}"
_ANNOTATIONS = "projectcalico.org/"
_CLUSTER_ID = f"{_ANNOTATIONS}RouteReflectorClusterID"
# One for all: a route that a reflector has sent on is not taken by another one. Nobody dials it.
_OF_ALL_REFLECTORS = "244.0.0.1"
_REFLECTORS_OF_A_ZONE = 2
_MOST_BYTES = 7000  # of the settings' add-on: it travels in one command of 8 KB
_PASSWORDS = "calico-bgp-passwords"


def manifests(wanted: Wanted) -> Mapping[str, str]:
    """Kinds, settings, rights, and pods of Calico, by name of the add-on.

    Its store is the API alone, and kube-proxy stays.
    """
    return {
        "calico-crds": documents(*calico_objects.definitions()),
        "calico-crds-of-settings": documents(*calico_objects.definitions_of_settings()),
        "calico-kube-controllers": documents(calico_pods.controllers(wanted)),
        "calico-node": documents(calico_pods.agent(wanted)),
        "calico-rights": documents(*_rights(), *_of_passwords(wanted.spec)),
        _SETTINGS: documents(*calico_objects.settings(wanted.spec, _SETTINGS)),
        "calico-typha": documents(*calico_pods.typha(wanted)),
    }


def _rights() -> Iterator[Document]:
    for account, rules in (
        (calico_pods.NODE, calico_rights.of_nodes(calico_pods.CNI)),
        (calico_pods.CNI, calico_rights.of_cni()),
        (calico_pods.CONTROLLERS, calico_rights.of_controllers(calico_pods.NODE)),
    ):
        yield service_account(account, _NAMESPACE)
        yield cluster_role(account, rules)
        yield cluster_role_binding(account, account, account, _NAMESPACE)


def _of_passwords(spec: Spec) -> Iterator[Document]:
    """There with no rules, too: nothing takes away what is no longer said."""
    names = {peer.password_secret for peer in spec.network.bgp_peers if peer.password_secret}
    group = "rbac.authorization.k8s.io"
    yield {
        "apiVersion": f"{group}/v1",
        "kind": "Role",
        "metadata": meta(_PASSWORDS, _NAMESPACE),
        "rules": calico_rights.of_passwords(sorted(names)),
    }
    yield {
        "apiVersion": f"{group}/v1",
        "kind": "RoleBinding",
        "metadata": meta(_PASSWORDS, _NAMESPACE),
        "roleRef": {"apiGroup": group, "kind": "Role", "name": _PASSWORDS},
        "subjects": [{"kind": "ServiceAccount", "name": calico_pods.NODE, "namespace": _NAMESPACE}],
    }


def problems(spec: Spec) -> Iterator[Problem]:
    """Blocks that do not fit podCidr, reflectors and routers that nobody would have."""
    network, pods = spec.network, int(spec.cluster.pod_cidr.partition("/")[2])
    if network.block_size < pods:
        text = f"/{network.block_size} is more than all of podCidr, a /{pods}; write {pods} or more"
        yield Problem("network.blockSize", text)
    if network.backend != "bgp":
        return
    chosen = network.bgp_topology
    if network.bgp_reflector_pools and not chosen.endswith("reflectors"):
        text = f"does nothing with bgpTopology {chosen}; leave it out, or use reflectors"
        yield Problem("network.bgpReflectorPools", text)
    for place, name in enumerate(network.bgp_reflector_pools):
        pool = spec.pools.get(name)
        if pool is None or not {"master", "worker"} & {*pool.roles}:
            text = f"{name} is not a pool of nodes; name one that has the role master or worker"
            yield Problem(f"network.bgpReflectorPools[{place}]", text)
    if chosen == "peers" and not network.bgp_peers:
        text = "is peers, and bgpPeers has no router: no node would know a way to another's pods"
        yield Problem("network.bgpTopology", text)
    yield from _routers(spec)


def _routers(spec: Spec) -> Iterator[Problem]:
    seen: set[str] = set()
    for place, peer in enumerate(spec.network.bgp_peers):
        if peer.address in seen:
            text = f"{peer.address} is named twice; nodes have one session with a router"
            yield Problem(f"network.bgpPeers[{place}].address", text)
        seen.add(peer.address)
    if spec.network.bgp_peers:
        size = len(documents(*calico_objects.settings(spec, _SETTINGS)))
        if size > _MOST_BYTES:
            text = f"make {size} bytes of objects, and one command takes {_MOST_BYTES}; name fewer"
            yield Problem("network.bgpPeers", text)


def marks(spec: Spec, members: Iterable[Member]) -> Mapping[str, Marks]:
    """By name of the node: those that are route reflectors; of the others, that they are none."""
    network, there = spec.network, [*members]
    by_reflectors = network.backend == "bgp" and network.bgp_topology.endswith("reflectors")
    chosen = _reflectors(there, network.bgp_reflector_pools) if by_reflectors else set()
    mark = Marks(
        labels={calico_objects.REFLECTOR: "true"}, annotations={_CLUSTER_ID: _OF_ALL_REFLECTORS}
    )
    return {one.name: mark if one.name in chosen else Marks() for one in there}


def is_smooth(key: str, before: NetworkSpec, now: NetworkSpec) -> bool:
    """Whether other sessions carry packets while these change.

    Of reflectors with a mesh beside them only pods on those that begin or end as such may be cut
    off for seconds: a mesh leaves reflectors out.
    """
    topologies = (before.bgp_topology, now.bgp_topology)
    routers = before.bgp_peers if before.bgp_peers == now.bgp_peers else ()
    by_routers = any(not router.zones for router in routers)
    if key == "bgp_topology":
        return by_routers or topologies in _STEPS
    if key == "bgp_reflector_pools":
        return by_routers or now.bgp_topology != "reflectors"
    return False


def _reflectors(members: Sequence[Member], pools: Sequence[str]) -> set[str]:
    """Those of the pools; without any two of each zone, workers before masters, in their order."""
    if pools:
        return {one.name for one in members if one.pool in pools}
    zones: dict[str | None, list[Member]] = defaultdict(list)
    for one in members:
        zones[one.zone].append(one)
    return {
        one.name
        for there in zones.values()
        for one in sorted(there, key=lambda each: each.is_master)[:_REFLECTORS_OF_A_ZONE]
    }


def policies() -> tuple[tuple[Document, Document], ...]:
    """Of Nodes the one that its pod runs on; who reflects routes is the masters' word."""
    made = own_node.policy_of(
        "kube-ha-calico", _ACCOUNT, "calico-node", _ANNOTATIONS, kept=[_CLUSTER_ID]
    )
    return (made,)
