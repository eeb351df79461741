"""What Hetzner would refuse of its section, or does otherwise than the config says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from ipaddress import IPv4Address, IPv4Network

from stacks.config.addresses import holds
from stacks.config.clouds import HcloudSpec
from stacks.config.problems import Problem
from stacks.config.spec import Spec
from stacks.providers import cloud
from stacks.providers.hcloud import balancer, locations
from stacks.providers.places import Place

# What a Network takes (provider documentation, hcloud_network, hcloud_network_route).
_PRIVATE = tuple(map(IPv4Network, ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")))
_GATEWAY = IPv4Address("172.31.1.1")  # of every server's public interface
_MASKS = (8, 28)
_IN_NETWORK = 100  # servers and load balancers
_VOLUME_GIB = 10240
_EVERYBODY = "0.0.0.0/0"
# Where these are sold was read, and it changes.
_OF_EUROPE = ("cx", "cax")
_LARGER = {"lb11": "lb21", "lb21": "lb31"}


def problems(spec: Spec, places: Sequence[Place]) -> Iterator[Problem]:
    """What is wrong in its section, and with settings that are for other providers."""
    yield from cloud.idle(spec, filters=False)
    said = spec.machines.hcloud
    if said is None:
        return
    yield from _network(said)
    yield from _disks(spec, said)
    yield from _balancers(spec, said, places)
    yield from _firewall(spec, said)


def warnings(spec: Spec, places: Sequence[Place]) -> Iterator[Problem]:
    """More machines than a network takes; types that are not sold everywhere."""
    said = spec.machines.hcloud
    if said is None:
        return
    if len(places) > _IN_NETWORK - len(balancer.OFFSETS):
        text = (
            f"{len(places)} machines and their load balancers are in one private network, which "
            f"takes {_IN_NETWORK} of both; ask Hetzner before you make them"
        )
        yield Problem("pools", text)
    types = {"machines.hcloud.machineType": said.machine_type}
    types |= {
        f"pools.{name}.machineType": one.machine_type or "" for name, one in spec.pools.items()
    }
    for path, type_ in types.items():
        if said.network_zone != locations.EUROPE and type_.startswith(_OF_EUROPE):
            text = f"{type_} was sold in {locations.EUROPE} alone; elsewhere take ccx13, or a cpx"
            yield Problem(path, text)


def _network(said: HcloudSpec) -> Iterator[Problem]:
    path, network = "machines.hcloud.cidr", IPv4Network(said.cidr)
    low, high = _MASKS
    if not any(network.subnet_of(one) for one in _PRIVATE):
        listed = ", ".join(map(str, _PRIVATE))
        yield Problem(path, f"{network} is not private; take a part of {listed}")
    elif _GATEWAY in network:
        text = f"{network} has {_GATEWAY}, the gateway of every server; take another network"
        yield Problem(path, text)
    if not low <= network.prefixlen <= high:
        yield Problem(path, f"/{network.prefixlen} does not fit; use /{low} to /{high}")


def _disks(spec: Spec, said: HcloudSpec) -> Iterator[Problem]:
    sizes = {"machines.hcloud": said.etcd_disk_gib}
    sizes |= {f"pools.{name}": pool.etcd_disk_gib or 0 for name, pool in spec.pools.items()}
    for path, size in sizes.items():
        if size > _VOLUME_GIB:
            yield Problem(f"{path}.etcdDiskGib", f"{size} is more than a volume has, {_VOLUME_GIB}")


def _balancers(spec: Spec, said: HcloudSpec, places: Sequence[Place]) -> Iterator[Problem]:
    """Who comes to load balancers, and how many machines are behind one."""
    if said.api_load_balancer == "external" and _EVERYBODY not in said.api_from:
        text = (
            f"has no {_EVERYBODY}: Hetzner's load balancers have no firewall, so the external one "
            f"lets in everybody; write {_EVERYBODY} if that is meant, or apiLoadBalancer: internal"
        )
        yield Problem("machines.hcloud.apiFrom", text)
    wanted = spec.front_doors.ingress
    roles = {name: set(pool.roles) for name, pool in spec.pools.items()}
    workers = [name for name, has in roles.items() if "worker" in has and "master" not in has]
    behind = (wanted.pools or workers) if wanted else ()
    count = sum(place.pool in behind for place in places)
    most = balancer.TARGETS[said.load_balancer_type]
    if count > most:
        larger = _LARGER.get(said.load_balancer_type)
        way = f"take {larger}" if larger else "name fewer pools in frontDoors.ingress.pools"
        text = (
            f"{said.load_balancer_type} has {most} machines behind it, and ingress {count}; {way}"
        )
        yield Problem("machines.hcloud.loadBalancerType", text)


def _firewall(spec: Spec, said: HcloudSpec) -> Iterator[Problem]:
    """That of machines themselves, which also sees what comes by the private network."""
    own = spec.machines.firewall
    if own is None:
        return
    for path, wanted, let_in in (
        ("sshFrom", said.ssh_from, own.ssh_from),
        ("apiFrom", cloud.api_clients(said), own.api_from),
    ):
        for one in wanted:
            if not any(IPv4Network(one).subnet_of(IPv4Network(other)) for other in let_in):
                text = f"lacks {one}, which machines.hcloud lets in; add it"
                yield Problem(f"machines.firewall.{path}", text)
    address = balancer.address(said, "api-internal")
    if not holds(own.networks, address):
        text = f"has no network with {address}, the load balancer's; add machines.hcloud.cidr"
        yield Problem("machines.firewall.networks", text)
