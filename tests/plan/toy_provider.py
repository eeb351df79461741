"""One provider more, all of it: its section, what stacks/ asks of it, and its resources.

A cloud whose machines are commands of this computer: no other resource type has to be known to the recording engine.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from ipaddress import IPv4Network

from pydantic import Field

from stacks.config.addresses import nth
from stacks.config.clouds import CloudSpec
from stacks.config.fields import Cidr, Region, Role
from stacks.config.problems import Problem
from stacks.config.spec import Spec
from stacks.providers import cloud
from stacks.providers import places as pools
from stacks.providers.places import Place
from stacks.providers.provider import OwnNetwork, Said, Way
from stacks.providers.resources import Kind, OfMachine, Options, Resource, Resources
from stacks.providers.site import Balancer, Machine, Site
from stacks.providers.store_identity import StoreIdentity

NAME = "toy"
MADE = True
LOCAL = False
MAKER = "the toy"
PLACE = "in the toy's cloud"
FIXED: Mapping[str, str] = {"cidr": "machines have their addresses of it"}
TYPE = (re.compile(r"box-[0-9]+"), "box-2")
ARM = re.compile(r"box-9[0-9]*")
DNS_ZONE = "'toys'"
DNS_ZONE_PROJECT = False
TUNNEL_FROM: tuple[str, ...] = ()
HEALTH_CHECKS: Mapping[Balancer, tuple[str, ...]] = {"internal": ("198.51.100.0/24",)}
OWN_LABELS = "toy"
PROTECTED_BY = "the toy"
SPOT_SHUTDOWN_S: tuple[int, int] | None = (20, 5)
SPOT = True
PROXY_PROTOCOL = True
SPOT_NOTICE = True
STORE: StoreIdentity | None = None


class ToySpec(CloudSpec):
    region: Region = Field(description="region")
    cidr: Cidr = Field("10.30.0.0/20", description="range of the machines")
    machine_type: str = Field("box-2", description="machine type")


def _section(spec: Spec) -> ToySpec | None:
    found = getattr(spec.machines, NAME)
    return found if isinstance(found, ToySpec) else None


def said(spec: Spec) -> Said | None:
    found = _section(spec)
    if found is None:
        return None
    return Said(region=found.region, machine_type=found.machine_type, etcd_disk={})


def places(spec: Spec, name: str) -> list[Place]:
    return pools.counted(spec, name, lambda zone: subnet(spec, zone) or cloud.NOWHERE)


def network(spec: Spec) -> OwnNetwork | None:
    found = _section(spec)
    return OwnNetwork(path="machines.toy.cidr", cidr=found.cidr) if found else None


def mirror(_spec: Spec) -> None:
    """None."""


def problems(spec: Spec, _places: Sequence[Place]) -> Iterator[Problem]:
    yield from cloud.idle(spec)
    found = _section(spec)
    if found and found.region == "no-where1":
        yield Problem("machines.toy.region", "is no region of the toy")


def subnet(spec: Spec, _zone: str | None) -> IPv4Network | None:
    found = _section(spec)
    return IPv4Network(found.cidr) if found else None


def subnet_words(_zone: str) -> str:
    return "machines.toy.cidr"


def zone_form(region: str) -> tuple[str, str]:
    return f"{region}[0-9]", f"{region}1"


def zones(_spec: Spec) -> None:
    """All of the region."""


def balancer_addresses(spec: Spec) -> tuple[str, ...]:
    found = _section(spec)
    return (nth(found.cidr, cloud.BALANCER_OFFSET),) if found else ()


def bastion_address(spec: Spec, *, tunnel: bool) -> str | None:
    found = _section(spec)
    return nth(found.cidr, 3 if tunnel else cloud.BASTION_OFFSET) if found else None


def bastion_type(_spec: Spec) -> str:
    return "box-2"


def first_offset(_spec: Spec) -> int:
    return cloud.FIRST_OFFSET


def ground(_spec: Spec) -> Mapping[str, object]:
    return {}


def inner_domain(_spec: Spec) -> str:
    return ""


def machine_id(_spec: Spec, zone: str | None, instance: str) -> str:
    return f"toy://{zone}/{instance}"


def unfit(type_: str, _roles: Collection[Role]) -> str:
    return "is too small" if type_ == "box-1" else ""


def warnings(_spec: Spec, _places: Sequence[Place]) -> Sequence[Problem]:
    return ()


def explained(_text: str) -> Sequence[str]:
    return ()


def is_dns_zone(text: str) -> bool:
    return text == "toys"


def resources(site: Site) -> Resources:
    doors = [_made(f"{rule.name}-let-in", "firewall") for rule in site.rules]
    balancer = [_made("api-internal", "load balancer")] if site.balancer == "internal" else []
    waits = tuple(one.name for one in doors)
    return Resources(
        around=(*doors, *balancer),
        machines={one.name: _machine(one, waits) for one in site.machines},
        bastion="192.0.2.1",
        balancer=site.balancer_addresses[0] if balancer else None,
    )


def _machine(machine: Machine, waits: tuple[str, ...]) -> OfMachine:
    own = _made(f"{machine.name}-machine", "machines", after=waits)
    return OfMachine(
        resources=(own,), machine=own.name, ready=own.name, address=machine.address, id=own.name
    )


def _made(name: str, kind: Kind, after: tuple[str, ...] = ()) -> Resource:
    """A command."""
    return Resource(name, kind, "command.local.Command", Options(after=after)).of(
        create=f"toy make {name}",
        delete=f"toy delete {name}",
        logging="none",
        add_previous_output_in_env=False,
    )


def way(_spec: Spec, _bastion: str) -> Way | None:
    return None
