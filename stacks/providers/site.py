"""What a cloud is told of a cluster, to name its resources as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from stacks.config.front_doors import DnsZoneSpec
from stacks.config.spec import Spec

Balancer = Literal["none", "internal", "external"]
Group = Literal[  # of machines
    "machine", "control", "etcd", "master", "node", "loadbalancer", "bastion"
]
Kind = Literal["network", "firewall", "load balancer", "account", "bastion", "machines", "DNS zone"]
Part = tuple[str, Kind, object]  # name behind the cluster's, kind, what it is made of


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Connections that are let in. Everything else that comes from elsewhere is not."""

    name: str  # unique, stable
    protocol: Literal["tcp", "udp", "icmp", "vrrp", "ipip", "esp", "all"]
    ports: tuple[int, int] | None  # first and last; None: the protocol has none
    to: Group
    groups: tuple[Group, ...] = ()  # of whom
    ranges: tuple[str, ...] = ()  # of which networks outside


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """One that is made; with etcd it has a disk for it, and may be protected."""

    name: str
    groups: tuple[Group, ...]
    etcd_disk_gib: int | None = None  # None: it has no disk for etcd

    @property
    def is_etcd(self) -> bool:
        return "etcd" in self.groups

    @property
    def is_master(self) -> bool:
        return "master" in self.groups


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A cluster and its machines, as far as a cloud has to do with them."""

    spec: Spec
    balancer: Balancer
    machines: tuple[Machine, ...]
    zones_of_masters: tuple[str, ...]  # sorted
    rules: tuple[Rule, ...]
    dns_zone: DnsZoneSpec | None  # of the record that the stack makes


def dns_zone(site: Site, where: object) -> list[Part]:
    """A zone that is made for the record; `where`: what sees it."""
    said = site.dns_zone
    if said is None or said.id:
        return []
    return [(f"zone-{said.domain.replace('.', '-')}", "DNS zone", where)]


def word(cidr: str) -> str:
    """A network in the name of a resource."""
    return cidr.replace(".", "-").replace("/", "-")
