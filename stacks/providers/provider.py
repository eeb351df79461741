"""What is asked of whoever has the machines. Each is one module, listed in registry.py.

A provider sees what the config says, never the plan of a cluster: most answers are data. A cloud's
resources are, too; components/machines/cloud.py registers them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network
from typing import Protocol

from stacks.config.fields import Role
from stacks.config.problems import Problem
from stacks.config.runtime import MirrorSpec
from stacks.config.spec import Spec
from stacks.providers.places import Place
from stacks.providers.resources import Resources
from stacks.providers.site import Balancer, Site
from stacks.providers.store_identity import StoreIdentity


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnNetwork:
    """The network that machines are made in."""

    path: str  # config path
    cidr: str
    sizes: tuple[int, int] | None = None  # prefix lengths; None: the provider's own problems say so
    why: str = ""  # those and no others
    # Of one layer 2, in which a virtual IP can move: whose its addresses are, counted from its own.
    taken: Mapping[int, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """The commands of a cloud by which a tunnel points to the bastion."""

    bastion: str  # its name there
    port: int  # of this computer
    programs: tuple[tuple[str, str], ...]  # program, and where to get it
    log_in: str  # what a person does when the cloud does not know them
    find: tuple[str, ...]  # prints JSON about the bastion
    read: Callable[[object], list[str]]  # of that JSON: the last words of `lead`, for each found
    lead: tuple[str, ...]  # listens until it is ended; what `read` gives stands behind


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What every cloud's section says in words of its own."""

    region: str
    machine_type: str
    # Of etcd's disks, by key of the section: what those that are there keep.
    etcd_disk: Mapping[str, str | None]
    machines: tuple[
        object, ...
    ] = ()  # what else they are made of, which none that is there follows


class Provider(Protocol):
    """Whoever has the machines of a cluster."""

    NAME: str  # of the provider, and of its section below `machines`, where it has one
    MADE: bool  # machines and their keys are made, so many of a pool; else hosts are listed
    LOCAL: bool  # containers on this computer, which no other one knows of
    MAKER: str  # for people: who makes machines
    PLACE: str  # for people: where they are
    FIXED: Mapping[str, str]  # keys of its section that a cluster keeps for life -> why

    def places(self, spec: Spec, name: str) -> list[Place]:
        """The machines of a pool."""

    def network(self, spec: Spec) -> OwnNetwork | None:
        """What machines are made in; None: it is not known here."""

    def mirror(self, spec: Spec) -> MirrorSpec | None:
        """What nodes fetch from where the config names no mirror; None: upstream."""

    def problems(self, spec: Spec, places: Sequence[Place]) -> Iterable[Problem]:
        """What is wrong in its section, and with settings that are for other providers."""


class Cloud(Provider, Protocol):
    """Machines that are made in a cloud; its section is a CloudSpec."""

    TYPE: tuple[re.Pattern[str], str]  # a machine type: its form, and an example
    ARM: re.Pattern[str]  # machine types of arm64; all others are of amd64
    # An example of what a zone that is there is called, quoted; empty: no records are made there.
    DNS_ZONE: str
    DNS_ZONE_PROJECT: bool  # such a zone may be another project's
    TUNNEL_FROM: tuple[str, ...]  # networks from which a tunnel comes to the bastion
    HEALTH_CHECKS: Mapping[Balancer, tuple[str, ...]]  # networks that a load balancer asks from
    OWN_LABELS: str  # how labels begin that the cloud keeps for itself; empty: none do
    SPOT: bool  # it sells machines that it may take away
    # How long a spot machine has, in seconds, from its shutdown on, and of that critical pods;
    # None: as long as others.
    SPOT_SHUTDOWN_S: tuple[int, int] | None
    PROXY_PROTOCOL: bool  # its load balancers tell clients' addresses by it
    SPOT_NOTICE: bool  # a spot machine finds in its metadata (IMDS) when it will be taken away
    STORE: StoreIdentity | None  # its object store; None: it knows no machines by themselves
    PROTECTED_BY: str  # who keeps an update from deleting a protected machine; empty: nobody does

    def said(self, spec: Spec) -> Said | None:
        """What its section says; None: it is missing."""

    def subnet(self, spec: Spec, zone: str | None) -> IPv4Network | None:
        """What machines of a zone have their addresses of; None: it is not known."""

    def subnet_words(self, zone: str) -> str:
        """Config path of its range, for people."""

    def zone_form(self, region: str) -> tuple[str, str]:
        """How zones of a region are called: a pattern, and an example."""

    def zones(self, spec: Spec) -> Collection[str] | None:
        """Zones that machines can be in; None: all of the region."""

    def balancer_addresses(self, spec: Spec) -> tuple[str, ...]:
        """Addresses kept for the internal load balancer, whether there is one or not."""

    def bastion_address(self, spec: Spec, *, tunnel: bool) -> str | None:
        """Inner address of the bastion, or of that of a tunnel; None: the cloud's choice."""

    def bastion_type(self, spec: Spec) -> str:
        """Machine type of the bastion."""

    def first_offset(self, spec: Spec) -> int:
        """The first number of a network that machines of pools may have; those below are taken."""

    def ground(self, spec: Spec) -> Mapping[str, object]:
        """What machines stand in for life, by config path; zones that come and go have own ones."""

    def inner_domain(self, spec: Spec) -> str:
        """Of names that its controller manager gives nodes; empty: they keep their own."""

    def machine_id(self, spec: Spec, zone: str | None, instance: str) -> str:
        """What Kubernetes knows a machine by; `instance`: what the cloud calls it."""

    def unfit(self, type_: str, roles: Collection[Role]) -> str:
        """Why no machine of these roles should be of a type; empty: nothing is against it."""

    def warnings(self, spec: Spec, places: Sequence[Place]) -> Iterable[Problem]:
        """What its accounts may lack, or what it does otherwise than people expect."""

    def is_dns_zone(self, text: str) -> bool:
        """Whether a zone that is there can be called so."""

    def resources(self, site: Site) -> Resources:
        """What there is of a cluster, as it is registered and told."""

    def explained(self, text: str) -> Iterable[str]:
        """What to do about policies of an organisation that an answer of the cloud names."""

    def way(self, spec: Spec, bastion: str) -> Way | None:
        """How a tunnel points to the bastion of that name."""
