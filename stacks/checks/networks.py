"""Checks of networks: pods, services and the lab apart from each other, and big enough."""

from __future__ import annotations

from ipaddress import IPv4Network

from stacks.config.problems import Problem
from stacks.config.spec import Spec
from stacks.networks import registry
from stacks.providers import registry as providers
from stacks.render import sysctl

# Of every computer, whatever its network.
_TAKEN = {
    IPv4Network("0.0.0.0/8"): "this network",
    IPv4Network("127.0.0.0/8"): "loopback",
    IPv4Network("169.254.0.0/16"): "link-local",
    IPv4Network("224.0.0.0/3"): "multicast and reserved",
}
_MOST_PARTS = 16  # bits between podCidr and a node's part; kubeadm takes no more
_NOT_FOR_PODS = 3  # addresses of a node's part: the network's own, the bridge's, broadcast

_OWN = "set it in your own network's manifest"

# Keys that some networks do not follow.
OF_SOME = (
    *("own", "mtu", "backend", "kube_proxy_replacement", "block_size", "typha"),
    *("bgp_topology", "bgp_reflector_pools", "bgp_as_number", "bgp_peers"),
)

# Of the limits of a network's size.
_WHY = {
    "cluster.podCidr": "every node takes a /{mask} of it, and kubeadm makes 65536 of those at most",
    "cluster.serviceCidr": "an API server takes a million addresses at most, and .10 is DNS",
}


def problems(spec: Spec) -> list[Problem]:
    """Networks that overlap, that no component takes, or that are too small."""
    return [
        *_networks(spec),
        *_nodes_in_pod_cidr(spec),
        *_pods_on_a_node(spec),
        *_idle(spec),
        *_sysctls(spec),
        *registry.of(spec).problems(spec),
    ]


def _networks(spec: Spec) -> list[Problem]:
    """Pods, services and the lab must not share an address; sizes Kubernetes takes."""
    named = [
        ("cluster.podCidr", IPv4Network(spec.cluster.pod_cidr)),
        ("cluster.serviceCidr", IPv4Network(spec.cluster.service_cidr)),
    ]
    machines = providers.of(spec).network(spec)
    if machines is not None:
        named.append((machines.path, IPv4Network(machines.cidr)))
    out = [
        Problem(path, f"{network} overlaps {other_path} {other}; use networks of their own")
        for place, (path, network) in enumerate(named)
        for other_path, other in named[:place]
        if network.overlaps(other)
    ]
    out += [
        Problem(path, f"{network} meets {taken}, which is {what}; use a private network")
        for path, network in named
        for taken, what in _TAKEN.items()
        if network.overlaps(taken)
    ]
    mask = spec.network.node_cidr_mask
    limits = {
        "cluster.podCidr": (max(8, mask - _MOST_PARTS), mask),
        "cluster.serviceCidr": (12, 27),  # kube-apiserver takes 2^20 addresses at most; .10 is DNS
    }
    reasons = {path: text.format(mask=mask) for path, text in _WHY.items()}
    if machines is not None and machines.sizes is not None:
        limits[machines.path], reasons[machines.path] = machines.sizes, machines.why
    for path, network in named:
        if path not in limits:
            continue  # said by its provider
        low, high = limits[path]
        if not low <= network.prefixlen <= high:
            why = reasons[path]
            text = f"/{network.prefixlen} does not fit: {why}; use /{low} to /{high}"
            out.append(Problem(path, text))
    return out


def _nodes_in_pod_cidr(spec: Spec) -> list[Problem]:
    """Every node needs its own part of podCidr."""
    network, mask = IPv4Network(spec.cluster.pod_cidr), spec.network.node_cidr_mask
    if network.prefixlen > mask:
        return []  # said by _networks
    nodes = sum(
        len(providers.of(spec).places(spec, name))
        for name, pool in spec.pools.items()
        if "master" in pool.roles or "worker" in pool.roles
    )
    block = spec.network.block_size
    if registry.follows(spec, "block_size") and network.prefixlen <= block:
        room = 2 ** (block - network.prefixlen)
        if nodes > room:
            least = network.prefixlen + (nodes - 1).bit_length()
            text = f"{network} has {room} blocks of that size for {nodes} nodes; write {least}"
            return [Problem("network.blockSize", text)]
    room = 2 ** (mask - network.prefixlen)
    if nodes <= room:
        return []
    need = mask - (nodes - 1).bit_length()
    text = f"{network} has room for {room} nodes (a /{mask} each) of {nodes}; use /{need}"
    return [Problem("cluster.podCidr", text)]


def _pods_on_a_node(spec: Spec) -> list[Problem]:
    """Every pod of a node needs an address of the node's part."""
    mask, pods = spec.network.node_cidr_mask, spec.kubelet.max_pods
    room = 2 ** (32 - mask) - _NOT_FOR_PODS
    if pods <= room:
        return []
    wider = 32 - (pods + _NOT_FOR_PODS - 1).bit_length()
    text = (
        f"{pods} pods do not fit a node's /{mask} of podCidr, which has {room} addresses for them; "
        f"use {room}, or network.nodeCidrMask {wider} for a new cluster"
    )
    return [Problem("kubelet.maxPods", text)]


def _sysctls(spec: Spec) -> list[Problem]:
    """Kernel settings of a pod network that a node has for itself."""
    said = spec.network.own.sysctls if spec.network.own else {}
    text = "is set by the product on every node; leave it out"
    return [Problem(f'network.own.sysctls."{key}"', text) for key in said if key in sysctl.OF_NODES]


def _idle(spec: Spec) -> list[Problem]:
    """Settings that another network follows, or nobody."""
    network, wanted = registry.of(spec), spec.network
    fields = type(wanted).model_fields
    said = [key for key in OF_SOME if getattr(wanted, key) != fields[key].default]
    out = []
    for key in (key for key in said if not registry.follows(spec, key)):
        path = fields[key].alias or key
        if key in network.SETTINGS:
            owners = [name for name, one in network.BACKENDS.items() if key in one.settings]
            text = f"does nothing with backend {wanted.backend}; leave it out, or use"
            out.append(Problem(f"network.{path}", f"{text} {' or '.join(owners)}"))
            continue
        others = " or ".join(registry.with_setting(key))
        way = f"leave it out, or use {others}" if network.PROVED else _OWN
        out.append(Problem(f"network.{path}", f"does nothing with plugin {wanted.plugin}; {way}"))
    if "backend" in network.SETTINGS and wanted.backend not in network.BACKENDS:
        *names, last = network.BACKENDS
        text = (
            f"{wanted.backend} is none of {wanted.plugin}, which has {', '.join(names)} and {last}"
        )
        out.append(Problem("network.backend", text))
    usual = fields["proxy_mode"].default
    if wanted.kube_proxy_replacement and wanted.proxy_mode != usual:
        text = "does nothing with kubeProxyReplacement: no kube-proxy runs; leave it out"
        out.append(Problem("network.proxyMode", text))
    return out
