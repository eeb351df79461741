"""Machines that are made on Hetzner Cloud."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from ipaddress import IPv4Network

from stacks.config.fields import Role
from stacks.config.spec import Spec
from stacks.providers import cloud
from stacks.providers import places as pools
from stacks.providers.hcloud import balancer, checks, locations
from stacks.providers.hcloud import resources as made
from stacks.providers.places import Place
from stacks.providers.provider import OwnNetwork, Said, Way
from stacks.providers.site import Balancer
from stacks.providers.store_identity import StoreIdentity

NAME = "hcloud"
MADE = True
LOCAL = False
MAKER = NAME
PLACE = f"on {NAME}"
FIXED: Mapping[str, str] = {
    "networkZone": "machines are in its locations",
    "cidr": "machines have their addresses of it",
}
TYPE = (re.compile(r"(cx|cpx|cax|ccx)[0-9]{2}"), "cx33")
ARM = re.compile(r"cax.*")
DNS_ZONE = ""
DNS_ZONE_PROJECT = False
TUNNEL_FROM: tuple[str, ...] = ()
# They come by the private network, which no firewall of the cloud filters.
HEALTH_CHECKS: Mapping[Balancer, tuple[str, ...]] = {}
OWN_LABELS = ""
# The provider's pages say that it lifts this before it deletes, and for servers it does not.
PROTECTED_BY = "Hetzner"
SPOT = False
STORE: StoreIdentity | None = None  # a server has no identity there
SPOT_SHUTDOWN_S: tuple[int, int] | None = None
PROXY_PROTOCOL = True
SPOT_NOTICE = False

problems = checks.problems
warnings = checks.warnings
zone_form = locations.form
resources = made.resources


def said(spec: Spec) -> Said | None:
    """What its section says; None: it is missing."""
    found = spec.machines.hcloud
    if found is None:
        return None
    return Said(
        region=found.network_zone,
        machine_type=found.machine_type,
        etcd_disk={},
        machines=(found.image,),
    )


def places(spec: Spec, name: str) -> list[Place]:
    """So many machines, all in one subnet."""
    return pools.counted(spec, name, lambda zone: subnet(spec, zone) or cloud.NOWHERE)


def network(spec: Spec) -> OwnNetwork | None:
    """The subnet, which all locations share."""
    found = spec.machines.hcloud
    return OwnNetwork(path="machines.hcloud.cidr", cidr=found.cidr) if found else None


def mirror(_spec: Spec) -> None:
    """None comes with them."""


def subnet(spec: Spec, _zone: str | None) -> IPv4Network | None:
    """One of all locations."""
    found = spec.machines.hcloud
    return IPv4Network(found.cidr) if found else None


def subnet_words(_zone: str) -> str:
    """Config path of its range."""
    return "machines.hcloud.cidr"


def zones(_spec: Spec) -> None:
    """All of the network zone."""


def balancer_addresses(spec: Spec) -> tuple[str, ...]:
    """One, of the subnet."""
    found = spec.machines.hcloud
    return (balancer.address(found, "api-internal"),) if found else ()


def bastion_address(_spec: Spec, *, tunnel: bool) -> None:
    """There is no bastion, of a `tunnel` or other: machines are public."""


def bastion_type(_spec: Spec) -> str:
    """Of no bastion."""
    return ""


def first_offset(_spec: Spec) -> int:
    """The first address is the gateway's; those of load balancers follow."""
    return cloud.FIRST_OFFSET


def ground(_spec: Spec) -> Mapping[str, object]:
    """Nothing that is there already."""
    return {}


def inner_domain(_spec: Spec) -> str:
    """Nodes keep their own names."""
    return ""


def machine_id(_spec: Spec, _zone: str | None, instance: str) -> str:
    """As providerid.go of hcloud-cloud-controller-manager writes it; `instance`: its ID."""
    return f"hcloud://{instance}"


def unfit(_type: str, _roles: Collection[Role]) -> str:
    """Nothing: the smallest have 2 GiB of memory, and those that are sold change."""
    return ""


def is_dns_zone(_text: str) -> bool:
    """No record is made."""
    return False


def explained(_text: str) -> tuple[str, ...]:
    """Nothing: projects have no policies."""
    return ()


def way(_spec: Spec, _bastion: str) -> Way | None:
    """Machines are public."""
    return None
