"""Machines as the config names them: one place each, before anything else is known of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network

from stacks.config.fields import NodeState, Role
from stacks.config.pools import HostSpec, PoolSpec
from stacks.config.spec import Spec

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


def counted(spec: Spec, name: str, network: Callable[[str | None], IPv4Network]) -> list[Place]:
    """Machines that are made: so many of a pool, round-robin in its zones; `network`: of a zone."""
    pool = spec.pools[name]
    return [
        Place(
            path=f"pools.{name}.count",
            name=f"{name}-{ordinal}",
            pool=name,
            ordinal=ordinal,
            address=_address(network(zone), pool, ordinal),
            zone=zone,
            host=None,
            state=_state(spec, f"{name}-{ordinal}"),
            generation=_generation(spec, f"{name}-{ordinal}"),
        )
        for ordinal in range(1, (pool.count or 0) + 1)
        for zone in [_zone(spec, name, pool, ordinal)]
    ]


def listed(spec: Spec, name: str) -> list[Place]:
    """Machines that are there, each with its own lines."""
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
        for index, host in enumerate(spec.pools[name].hosts or ())
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


def _address(network: IPv4Network, pool: PoolSpec, ordinal: int) -> str:
    # Too many for the network are refused by the checks, which ask for the places first.
    number = min(int(network.network_address) + offset(pool) + ordinal, _LAST_ADDRESS)
    return str(IPv4Address(number))


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
