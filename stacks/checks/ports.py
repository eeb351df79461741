"""Checks of ports: two programs cannot listen at the same one of a machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stacks.catalogue import registry as catalogue
from stacks.cluster import clouds, inventory, node_ports
from stacks.config import ports
from stacks.config.problems import Problem
from stacks.config.spec import Spec
from stacks.networks import registry as networks
from stacks.providers.places import Place

_SSH = 22
_LEAST = 1024  # ports below it belong to the machine


def problems(spec: Spec, places: Sequence[Place]) -> Iterator[Problem]:
    """Ports of doors, of sshd and of Services that something else has already."""
    yield from _node_ports(spec, places)
    yield from _own_network(spec)
    yield from _ingress(spec)
    yield from _ssh(spec, places)
    yield from _etcd_door(spec, places)


def _ssh_port(spec: Spec, place: Place) -> tuple[int, str]:
    """The port of sshd, and the path that says so."""
    if place.host is None:
        return _SSH, "machines"
    own = place.host.port
    return own or spec.machines.ssh.port, f"{place.path}.port" if own else "machines.ssh.port"


def _holds_vip(spec: Spec, place: Place) -> bool:
    roles = spec.pools[place.pool].roles
    has_own = any("loadbalancer" in pool.roles for pool in spec.pools.values())
    return spec.front_doors.vip is not None and ("loadbalancer" if has_own else "master") in roles


def _node_ports(spec: Spec, places: Sequence[Place]) -> Iterator[Problem]:
    wanted = node_ports.of(spec)
    if wanted == node_ports.USUAL:
        return
    if wanted.start < _LEAST:
        text = f"begins at {wanted.start}, and ports below {_LEAST} belong to the machine itself"
        yield Problem(node_ports.PATH, f"{text}; begin higher, as with 30000-32767")
        return
    for place in places:
        roles = spec.pools[place.pool].roles
        if not {"master", "worker"} & set(roles):
            continue
        own = {
            **ports.of_roles(roles),
            **networks.local_ports(spec, roles),
            **catalogue.local_ports(spec, roles),
        }
        taken = {**own, **networks.ports(spec), _ssh_port(spec, place)[0]: "sshd"}
        hit = sorted(port for port in taken if port in wanted)
        if hit:
            text = f"{node_ports.span(wanted)} holds {hit[0]}, which belongs to {taken[hit[0]]} on"
            yield Problem(node_ports.PATH, f"{text} {place.name}; choose another range")
            return  # of all the same


def _own_network(spec: Spec) -> Iterator[Problem]:
    """Of another range than the usual one it is said where that is chosen."""
    said, there = spec.network.own, node_ports.of(spec)
    listed = [] if said is None or said.ports is None else [*said.ports]
    for index, one in enumerate(listed):
        if there == node_ports.USUAL and one.port in there:
            text = f"{one.port} is among the ports of Services of type NodePort"
            path = f"network.own.ports[{index}]"
            yield Problem(path, f"{text}, {node_ports.span(there)}; choose another one")


def _ingress(spec: Spec) -> Iterator[Problem]:
    wanted, there = spec.front_doors.ingress, node_ports.of(spec)
    if wanted is not None and not clouds.in_cloud(spec) and wanted.node_port not in there:
        text = f"{wanted.node_port} is not a port of a Service of type NodePort; those are"
        yield Problem("frontDoors.ingress.nodePort", f"{text} {node_ports.span(there)}")


def _ssh(spec: Spec, places: Sequence[Place]) -> Iterator[Problem]:
    """Of machines that end TLS at 80 and 443; what roles take is said by check_addresses."""
    if spec.front_doors.ingress is None:
        return
    seen = set()
    for place in places:
        port, path = _ssh_port(spec, place)
        if port in ports.INGRESS_PORTS and _holds_vip(spec, place) and path not in seen:
            seen.add(path)
            text = f"{port} is the ingress tier's on {place.name}, at every address of it"
            yield Problem(path, f"{text}; let sshd listen on another port")


def _etcd_door(spec: Spec, places: Sequence[Place]) -> Iterator[Problem]:
    """What roles take is said by check_front_doors."""
    wanted, vip = spec.front_doors.etcd, spec.front_doors.vip
    if wanted is None:
        return
    path = "frontDoors.etcd.port"
    if wanted.port in node_ports.of(spec):
        text = f"{wanted.port} is among the ports of Services of type NodePort"
        yield Problem(path, f"{text}, {node_ports.span(node_ports.of(spec))}; choose another one")
        return
    for place in places:
        if place.pool not in wanted.pools or "etcd" in spec.pools[place.pool].roles:
            continue
        taken = {_ssh_port(spec, place)[0]: "sshd"}
        if vip is not None and _holds_vip(spec, place):
            taken[vip.port] = "HAProxy, for the VIP,"
            if spec.front_doors.ingress is not None:
                taken |= dict.fromkeys(ports.INGRESS_PORTS, "the ingress tier")
        if wanted.port in taken:
            text = f"{wanted.port} belongs to {taken[wanted.port]} on {place.name}"
            yield Problem(path, f"{text}; choose another one")
            return  # of all the same


def bastion_problems(spec: Spec) -> Iterator[Problem]:
    """A jump host that is a node goes away with it, and takes the way to all others along."""
    bastion = spec.machines.ssh.bastion
    for place in inventory.places(spec):
        if bastion is None or place.host is None:
            continue
        if bastion.address in (place.address, place.host.ssh_address):
            text = (
                f"{bastion.address} is {place.name}: when that is wiped, rebooted or lost, nobody "
                "reaches the others; name a machine that is not a node"
            )
            yield Problem("machines.ssh.bastion.address", text)
            return
