"""Checks of the doors for clients outside: free addresses in reach that point to HAProxy."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from ipaddress import IPv4Address, IPv4Network

from stacks.checks import dns
from stacks.cluster import clouds, node_ports
from stacks.config import ports
from stacks.config.fields import Role
from stacks.config.front_doors import IngressSpec, VipSpec
from stacks.config.problems import Problem
from stacks.config.spec import Spec
from stacks.providers import registry
from stacks.providers.places import Place
from stacks.providers.provider import OwnNetwork

_VIP = "frontDoors.vip"
_ADOPTED_MASK = 24


def problems(spec: Spec, places: Sequence[Place]) -> list[Problem]:
    """A virtual IP that masters cannot hold, or that leads elsewhere than to HAProxy."""
    vip, out = spec.front_doors.vip, []
    if spec.front_doors.verify != "none" and spec.cluster.endpoint is None:
        text = "asks at cluster.endpoint, which is missing; name there what points to the masters"
        out.append(Problem("frontDoors.verify", text))
    out += [*_dns(spec), *_etcd(spec, places), *_ingress(spec)]
    if vip is None:
        return out
    return [
        *out,
        *_subnet(spec, vip, places),
        *_taken(spec, vip, places),
        *_port(spec, vip, places),
        *_endpoint(spec, vip),
        *_unused(vip),
    ]


def subnet(spec: Spec, vip: VipSpec) -> IPv4Network:
    """The network in which the address moves."""
    if vip.subnet is not None:
        return IPv4Network(vip.subnet)
    own = _layer_2(spec)
    if own is not None:
        return IPv4Network(own.cidr)
    return IPv4Network(f"{vip.address}/{_ADOPTED_MASK}", strict=False)


def _layer_2(spec: Spec) -> OwnNetwork | None:
    """What machines are made in, where an address can move in it."""
    own = registry.of(spec).network(spec)
    return own if own is not None and own.taken is not None else None


def _subnet(spec: Spec, vip: VipSpec, places: Sequence[Place]) -> Iterator[Problem]:
    """An address is heard of in its own layer 2 alone."""
    network, address = subnet(spec, vip), IPv4Address(vip.address)
    own = _layer_2(spec)
    if own is not None and vip.subnet is not None:
        text = f"is {own.path} {registry.of(spec).PLACE}; leave it out"
        yield Problem(f"{_VIP}.subnet", text)
        return
    what = own.path if own is not None else f"{_VIP}.subnet"
    if address not in network:
        text = f"{address} is not within {what} {network}, where the masters are"
        yield Problem(f"{_VIP}.address", f"{text}; choose a free address of it")
        return
    known = {
        network.network_address: "the network's own address",
        network.broadcast_address: "the network's broadcast address",
    }
    for number, whose in ((own.taken if own else None) or {}).items():
        known[network.network_address + number] = whose
    if network.prefixlen < 31 and address in known:
        yield Problem(f"{_VIP}.address", f"{address} is {known[address]}; choose a free one")
    has_own = any("loadbalancer" in pool.roles for pool in spec.pools.values())
    role: Role = "loadbalancer" if has_own else "master"
    who = "load balancers" if has_own else "masters"
    for place in places:
        outside = IPv4Address(place.address) not in network
        if role in spec.pools[place.pool].roles and outside:
            text = (
                f"{address} cannot move to {place.name}: {place.address} is not within {network}; "
                f"VIP and {who} share one layer 2 network, which frontDoors.vip.subnet names"
            )
            yield Problem(f"{_VIP}.address", text)


def _taken(spec: Spec, vip: VipSpec, places: Sequence[Place]) -> Iterator[Problem]:
    address = IPv4Address(vip.address)
    for place in places:
        if place.address == vip.address:
            text = f"{address} is the address of {place.name}; choose one that no machine has"
            yield Problem(f"{_VIP}.address", text)
    for name, cidr in (
        ("podCidr", spec.cluster.pod_cidr),
        ("serviceCidr", spec.cluster.service_cidr),
    ):
        if address in IPv4Network(cidr):
            text = f"{address} is in cluster.{name} {cidr}, which nobody outside reaches"
            yield Problem(f"{_VIP}.address", text)


def _port(spec: Spec, vip: VipSpec, places: Sequence[Place]) -> Iterator[Problem]:
    """HAProxy shares its machine with what listens at every address of it."""
    path = f"{_VIP}.port"
    if vip.port in node_ports.of(spec):
        span = node_ports.span(node_ports.of(spec))
        yield Problem(path, f"{vip.port} is among the ports of Services of type NodePort, {span}")
    for place in places:
        roles = spec.pools[place.pool].roles
        if not {"master", "loadbalancer"} & set(roles):
            continue
        taken = ports.of_roles(roles)
        if place.host is not None:
            taken[place.host.port or spec.machines.ssh.port] = "sshd"
        else:
            taken[22] = "sshd"
        if vip.port in taken:
            text = f"{vip.port} belongs to {taken[vip.port]} on {place.name}; choose another one"
            yield Problem(path, text)
            return  # of all of them the same


def _endpoint(spec: Spec, vip: VipSpec) -> Iterator[Problem]:
    host, _, port = (spec.cluster.endpoint or "").partition(":")
    if host == vip.address and int(port or ports.API_PORT) != vip.port:
        text = (
            f"leads past HAProxy to the one API server of the master that holds the VIP; write "
            f"{vip.address}:{vip.port}, or leave it out"
        )
        yield Problem("cluster.endpoint", text)


def _unused(vip: VipSpec) -> Iterator[Problem]:
    if vip.failover == "own" and vip.router_id != type(vip).model_fields["router_id"].default:
        text = "does nothing with failover own, which has no VRRP of kube-ha; leave it out"
        yield Problem(f"{_VIP}.routerId", text)


def _dns(spec: Spec) -> Iterator[Problem]:
    """A name, and a port that answers at the addresses that it is to have."""
    yield from dns.problems(spec)
    if spec.front_doors.dns == "none":
        return
    host, _, port = (spec.cluster.endpoint or "").partition(":")
    if not host or re.fullmatch(r"[0-9.]+", host):
        text = f"looks at the name in cluster.endpoint, which is {host or 'missing'}"
        yield Problem("frontDoors.dns", f"{text}; write a name there, or none here")
        return
    vip = spec.front_doors.vip
    wanted = vip.port if vip else ports.API_PORT
    if int(port or ports.API_PORT) != wanted:
        where = f"the VIP {vip.address}" if vip else "masters"
        text = f"{host} points to {where}, where the API answers at {wanted}; write {host}:{wanted}"
        yield Problem("cluster.endpoint", text)


def _etcd(spec: Spec, places: Sequence[Place]) -> Iterator[Problem]:
    """A way to etcd on nodes that have HAProxy and no member of their own."""
    wanted = spec.front_doors.etcd
    if wanted is None:
        return
    path = "frontDoors.etcd"
    if not wanted.pools:
        yield Problem(f"{path}.pools", "is empty; name a pool, or leave out frontDoors.etcd")
    for index, name in enumerate(wanted.pools):
        where = f"{path}.pools[{index}]"
        pool = spec.pools.get(name)
        if pool is None:
            yield Problem(
                where, f"{name!r} is not a pool; there are {', '.join(sorted(spec.pools))}"
            )
        elif "etcd" in pool.roles:
            text = f"{name} has etcd's members, which answer at 127.0.0.1:{ports.ETCD_CLIENT_PORT}"
            yield Problem(where, f"{text} already; leave it out")
        elif wanted.pools.index(name) != index:
            yield Problem(where, f"{name} is there twice")
    for place in places:
        roles = spec.pools[place.pool].roles
        ours = ports.of_roles(roles)
        if place.pool in wanted.pools and "etcd" not in roles and wanted.port in ours:
            text = f"{wanted.port} belongs to {ours[wanted.port]} on {place.name}"
            yield Problem(f"{path}.port", f"{text}; choose another one")
            return  # of all the same


def _ingress(spec: Spec) -> Iterator[Problem]:
    """Names to show a certificate for, nodes to point to, and an address to listen at."""
    wanted, vip = spec.front_doors.ingress, spec.front_doors.vip
    if wanted is None:
        return
    path = "frontDoors.ingress"
    if clouds.in_cloud(spec):
        yield from _ingress_of_cloud(spec, wanted)
        return
    if vip is None:
        yield Problem(path, "listens at the VIP, which is missing; write frontDoors.vip too")
    elif vip.port in (80, 443):
        text = f"{vip.port} is the ingress tier's; choose another one for the API"
        yield Problem(f"{_VIP}.port", text)
    if not wanted.hosts and not wanted.certificates:
        text = "is missing; name hosts for a certificate of the cluster's CA, or give certificates"
        yield Problem(f"{path}.hosts", text)
    working = {name for name, pool in spec.pools.items() if "worker" in pool.roles}
    for index, name in enumerate(wanted.pools):
        if name not in working:
            there = ", ".join(sorted(working)) or "none"
            text = f"{name!r} is not a pool with role worker; there are {there}"
            yield Problem(f"{path}.pools[{index}]", text)
    if not working:
        yield Problem(path, "points to nodes with role worker, of which there are none")


def _ingress_of_cloud(spec: Spec, wanted: IngressSpec) -> Iterator[Problem]:
    """The cloud's load balancer hands connections on as they are: TLS is the controller's."""
    path, usual, cloud = "frontDoors.ingress", IngressSpec(), registry.cloud(spec)
    for key, said in (("hosts", wanted.hosts), ("certificates", wanted.certificates)):
        if said:
            text = "are for TLS that ends before the cluster; in a cloud the ingress controller"
            yield Problem(f"{path}.{key}", f"{text} ends it, with certificates of its own")
    if wanted.node_port != usual.node_port:
        text = "is for machines that are in no cloud; here ports 80 and 443 of nodes are led to"
        yield Problem(f"{path}.nodePort", f"{text}; leave it out")
    if wanted.proxy_protocol and cloud is not None and not cloud.PROXY_PROTOCOL:
        text = f"is not spoken by load balancers of {cloud.NAME}, which keep clients' addresses"
        yield Problem(f"{path}.proxyProtocol", f"{text}; leave it out")
    working = sorted(clouds.may_be_behind_ingress(spec))
    there = ", ".join(working) or "none"
    for index, name in enumerate(wanted.pools):
        if name not in working:
            text = f"{name!r} is not a pool of workers alone; there are {there}"
            yield Problem(f"{path}.pools[{index}]", text)
    if not working:
        yield Problem(path, "points to pools of workers alone, of which there are none")
