"""Arithmetic of addresses."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network


def nth(network: str, number: int) -> str:
    """Address `number` of a network (CIDR), counted from its network address."""
    return str(IPv4Address(int(IPv4Network(network).network_address) + number))


def holds(networks: Iterable[str], address: str) -> bool:
    """Whether the address is in one of the networks (CIDRs)."""
    return any(IPv4Address(address) in IPv4Network(network) for network in networks)
