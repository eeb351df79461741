"""Arithmetic of addresses."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network


def nth(network: str, number: int) -> str:
    """Address `number` of a network (CIDR), counted from its network address."""
    return str(IPv4Address(int(IPv4Network(network).network_address) + number))
