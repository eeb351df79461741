"""Containers on this computer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from ipaddress import IPv4Address, IPv4Network

from stacks.config.addresses import nth
from stacks.config.machines import MachinesSpec, SshSpec
from stacks.config.problems import Problem
from stacks.config.runtime import MirrorSpec
from stacks.config.spec import Spec
from stacks.providers import places as pools
from stacks.providers.places import Place
from stacks.providers.provider import OwnNetwork

NAME = "lab"
MADE = True
LOCAL = True
MAKER = "the lab"
PLACE = "in the lab"
FIXED: Mapping[str, str] = {"subnet": "machines have their addresses of it"}
_SIZES = (16, 28)


def places(spec: Spec, name: str) -> list[Place]:
    """So many containers, all in one network."""
    subnet = IPv4Network(spec.machines.lab.subnet)
    return pools.counted(spec, name, lambda _zone: subnet)


def network(spec: Spec) -> OwnNetwork:
    """A bridge of this computer."""
    return OwnNetwork(
        path="machines.lab.subnet",
        cidr=spec.machines.lab.subnet,
        sizes=_SIZES,
        why="machines have numbers from 10 on in it, and a host has one such bridge",
        taken={1: "this computer's", 2: "the mirror's"},
    )


def mirror(spec: Spec) -> MirrorSpec:
    """The one that comes with the machines, at the second address of their network."""
    address = nth(spec.machines.lab.subnet, 2)
    return MirrorSpec(
        url=f"http://{address}:8080",
        registry=f"http://{address}:5000",
        manifest=".local/bundle/manifest.json",
    )


def problems(spec: Spec, places: Sequence[Place]) -> Iterator[Problem]:
    """Settings of machines that are there already; addresses beyond the network, or shared."""
    if spec.machines.on_release != MachinesSpec(provider="lab").on_release:
        text = "is for provider adopt; machines of the lab are deleted"
        yield Problem("machines.onRelease", text)
    elif spec.machines.ssh != SshSpec():
        yield Problem("machines.ssh", "is for provider adopt; the lab makes its own keys")
    yield from _addresses(spec)


def _addresses(spec: Spec) -> Iterator[Problem]:
    """First and last machine of each pool within the subnet; pools apart from each other."""
    subnet = IPv4Network(spec.machines.lab.subnet)
    if subnet.prefixlen > _SIZES[1]:
        return  # said of every network
    low, high = int(subnet.network_address) + 3, int(subnet.broadcast_address) - 1
    taken: list[tuple[str, int, int]] = []
    for name, pool in sorted(spec.pools.items()):
        if not pool.count:
            continue
        first = int(subnet.network_address) + pools.offset(pool) + 1
        last = first + pool.count - 1
        path = f"pools.{name}.addressOffset"
        span = f"{IPv4Address(first)} to {IPv4Address(last)}"
        if first < low or last > high:
            room = f"{IPv4Address(low)} to {IPv4Address(high)}"
            text = f"{span} is not within {room}; lower it, or widen machines.lab.subnet"
            yield Problem(path, text)
        for other, start, end in taken:
            if first <= end and start <= last:
                text = f"{span} meets the addresses of pool {other}; move it by {end - first + 1}"
                yield Problem(path, text)
        taken.append((name, first, last))
