"""Which machines a config asks for: names and addresses, before anything else is known of them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network

from stacks.cluster import clouds
from stacks.config.fields import GIVEN_UP, NodeState, Role
from stacks.config.pools import HostSpec, PoolSpec
from stacks.config.spec import Spec

_NOWHERE = IPv4Network("198.18.0.0/15")  # kept for benchmarks (RFC 2544); the config names none
_LAST_ADDRESS = 2**32 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One machine as the config names it."""

    path: str  # config path of the lines it comes from
    name: str
    pool: str
    ordinal: int  # made: from 1; adopted: the number at the end of its name, 0 without one
    address: str
    zone: str | None
    state: NodeState
    generation: int
    host: HostSpec | None  # None where the machine is made


def places(spec: Spec) -> tuple[Place, ...]:
    """Every machine, sorted by pool, ordinal, name.

    By nothing else: where a host is in its list must not matter, or taking one out would
    concern those behind it.
    """
    found = [place for name, pool in spec.pools.items() for place in _of_pool(spec, name, pool)]
    return tuple(sorted(found, key=lambda place: (place.pool, place.ordinal, place.name)))


def present(spec: Spec) -> tuple[Place, ...]:
    """The machines that are to be nodes of the cluster, in the order of `places`."""
    return tuple(place for place in places(spec) if place.state in ("active", "maintenance"))


def away(spec: Spec) -> tuple[Place, ...]:
    """The machines that are known, and no part of the cluster: given up or decommissioned."""
    states = (*GIVEN_UP, "decommissioned")
    return tuple(place for place in places(spec) if place.state in states)


def _of_pool(spec: Spec, name: str, pool: PoolSpec) -> list[Place]:
    if spec.machines.provider != "adopt":
        return [
            Place(
                path=f"pools.{name}.count",
                name=f"{name}-{ordinal}",
                pool=name,
                ordinal=ordinal,
                address=_address(spec, pool, _zone(spec, name, pool, ordinal), ordinal),
                zone=_zone(spec, name, pool, ordinal),
                host=None,
                state=_state(spec, f"{name}-{ordinal}"),
                generation=_generation(spec, f"{name}-{ordinal}"),
            )
            for ordinal in range(1, (pool.count or 0) + 1)
        ]
    return [
        Place(
            path=f"pools.{name}.hosts[{index}]",
            name=host.name,
            pool=name,
            ordinal=_number_at_end(host.name),
            address=host.address,
            zone=host.zone,
            host=host,
            state=_state(spec, host.name),
            generation=_generation(spec, host.name),
        )
        for index, host in enumerate(pool.hosts or ())
    ]


def _state(spec: Spec, name: str) -> NodeState:
    exception = spec.nodes.get(name)
    return exception.state if exception else "active"


def _generation(spec: Spec, name: str) -> int:
    exception = spec.nodes.get(name)
    return exception.generation if exception else 1


def _zone(spec: Spec, name: str, pool: PoolSpec, ordinal: int) -> str | None:
    """By its number, so that a machine keeps its zone whatever others come and go."""
    exception = spec.nodes.get(f"{name}-{ordinal}")
    if exception and exception.zone:
        return exception.zone
    return pool.zones[(ordinal - 1) % len(pool.zones)] if pool.zones else None


def _address(spec: Spec, pool: PoolSpec, zone: str | None, ordinal: int) -> str:
    network = IPv4Network(spec.machines.lab.subnet)
    if clouds.in_cloud(spec):
        network = clouds.subnet(spec, zone) or _NOWHERE
    # Too many for the network are refused by the checks, which ask for the places first.
    number = min(int(network.network_address) + offset(pool) + ordinal, _LAST_ADDRESS)
    return str(IPv4Address(number))


def lab_base(spec: Spec, pool: PoolSpec) -> int:
    """The address, as a number, that a lab machine's ordinal is added to."""
    return int(IPv4Network(spec.machines.lab.subnet).network_address) + offset(pool)


def offset(pool: PoolSpec) -> int:
    """What a machine's ordinal is added to, counted from the address of its network."""
    return _default_offset(pool.roles) if pool.address_offset is None else pool.address_offset


def _default_offset(roles: tuple[Role, ...]) -> int:
    if "master" in roles:
        return 10
    if "loadbalancer" in roles:
        return 30
    return 100 if "worker" in roles else 50


def _number_at_end(name: str) -> int:
    digits = re.search(r"[0-9]{1,9}$", name)
    return int(digits.group()) if digits else 0
