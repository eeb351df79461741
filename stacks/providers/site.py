"""What a cloud is told of a cluster, to name its resources."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from stacks.config.front_doors import DnsZoneSpec
from stacks.config.spec import Spec

Balancer = Literal["none", "internal", "external"]
Group = Literal[  # of machines
    "machine", "control", "etcd", "master", "node", "loadbalancer", "bastion", "ingress"
]


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
    zone: str
    address: str
    arch: str
    type: str
    disk_gib: int
    etcd_disk_gib: int | None  # None: it has no disk for etcd
    generation: int = 1  # another one is another machine
    is_spot: bool = False  # the cloud may take it away

    @property
    def is_etcd(self) -> bool:
        return "etcd" in self.groups

    @property
    def is_master(self) -> bool:
        return "master" in self.groups


@dataclass(frozen=True, slots=True, kw_only=True)
class Bastion:
    """The machine that people and CI systems come by."""

    name: str
    zone: str
    address: str | None  # inner one; None: the cloud's choice
    arch: str
    type: str
    mark: str | None  # another one replaces it: nothing on it is kept


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """The name of the API in a DNS, which the stack makes."""

    name: str
    ttl_s: int
    zone: DnsZoneSpec
    # The zone that is there, by its `domain` and whether it is `private`. Raises ValueError where
    # that is not the one that is meant.
    checked: Callable[..., str]

    @property
    def made_zone(self) -> str:
        """Name of the zone that is made for it: another domain has another one."""
        return f"zone-{self.zone.domain.replace('.', '-')}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ingress:
    """A load balancer for what runs in the cluster."""

    nodes: tuple[str, ...]  # that are behind it
    clients: tuple[str, ...]  # networks outside that are let in
    proxy_protocol: bool  # it tells clients' addresses


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A cluster and its machines, as far as a cloud has to do with them."""

    spec: Spec
    zones: tuple[str, ...]  # that machines may be made in, sorted
    machines: tuple[Machine, ...]  # also those that are decommissioned, and kept
    masters: tuple[str, ...]  # of them those that serve the API, in rollout order
    bastion: Bastion | None  # None: machines have public addresses
    rules: tuple[Rule, ...]
    balancer: Balancer
    balancer_addresses: tuple[str, ...]  # kept for an internal one
    api_addresses: tuple[str, ...] | None  # that its name points to; None: the cloud alone knows
    record: Record | None  # None: the stack makes none
    ingress: Ingress | None = None  # None: there is none
    token_keys: tuple[int, ...] = (1,)  # generations of keys that sign, or signed, tokens of pods

    @property
    def cluster(self) -> str:
        return self.spec.cluster.name


def word(cidr: str) -> str:
    """A network in the name of a resource."""
    return cidr.replace(".", "-").replace("/", "-")
