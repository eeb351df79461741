"""A fifth provider, all of it: its section, what stacks/ asks of it, and what it registers.

A cloud whose machines are commands of this computer: no other resource type has to be known to the recording engine.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from ipaddress import IPv4Network

from pulumi import ComponentResource, Input, Resource, ResourceOptions
from pulumi_command import local
from pydantic import Field

from components.machines.api_door import ApiDoor
from components.machines.cloud import Keys
from components.ssh.commands import Machine
from stacks.cluster import cloud_resources
from stacks.cluster.plan import Node, Plan
from stacks.config.addresses import nth
from stacks.config.clouds import CloudSpec
from stacks.config.fields import Cidr, Region, Role
from stacks.config.problems import Problem
from stacks.config.spec import Spec
from stacks.providers import cloud
from stacks.providers import places as pools
from stacks.providers.places import Place
from stacks.providers.provider import OwnNetwork, Said, Way
from stacks.providers.site import Balancer, Part, Site, dns_zone

NAME = "toy"
MADE = True
LOCAL = False
MAKER = "the toy"
PLACE = "in the toy's cloud"
FIXED: Mapping[str, str] = {"cidr": "machines have their addresses of it"}
ZONE = ("[0-9]", "1")
TYPE = (re.compile(r"box-[0-9]+"), "box-2")
ARM = re.compile(r"box-9[0-9]*")
DNS_ZONE = "'toys'"
DNS_ZONE_PROJECT = False
TUNNEL_FROM: tuple[str, ...] = ()
HEALTH_CHECKS: Mapping[Balancer, tuple[str, ...]] = {"internal": ("198.51.100.0/24",)}
OWN_LABELS = "toy"
DISK_TYPE_STAYS = False
PROTECTED_BY = "the toy"


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
    return Said(region=found.region, machine_type=found.machine_type, etcd_disk_type="")


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


def balancer_stands(_spec: Spec, _kind: Balancer) -> Mapping[str, object]:
    return {}


def warnings(_spec: Spec, _places: Sequence[Place]) -> Sequence[Problem]:
    return ()


def is_dns_zone(text: str) -> bool:
    return text == "toys"


def resources(site: Site) -> Iterator[Part]:
    for rule in site.rules:
        yield f"{rule.name}-let-in", "firewall", rule
    if site.balancer != "none":
        yield f"api-{site.balancer}", "load balancer", ()
    for machine in site.machines:
        yield f"{machine.name}-machine", "machines", machine.groups
    yield from dns_zone(site, ())


def way(_spec: Spec, _bastion: str) -> Way | None:
    return None


class Toy(ComponentResource):
    """One command a resource."""

    def __init__(self, plan: Plan, opts: ResourceOptions | None) -> None:
        name = plan.spec.cluster.name
        super().__init__("kube-ha:index:Toy", f"{name}-machines", None, opts)
        self._name, self._plan = name, plan
        self._keys = Keys(self._name, self)
        self._through = self._keys.jump(plan, "192.0.2.1")
        self._ground = [self._made(part, after=[]) for part in cloud_resources.of_plan(plan, ())]
        self.register_outputs({})

    @property
    def api_address(self) -> Input[str] | None:
        addresses = balancer_addresses(self._plan.spec)
        return addresses[0] if self._plan.balancer == "internal" else None

    def api_door(self) -> ApiDoor | None:
        return None

    def machine(self, node: Node, after: Resource | None) -> Machine:
        made = self._made(
            f"{node.name}-machine", after=[*self._ground, *([after] if after else [])]
        )
        return self._keys.machine(
            node,
            address=node.address,
            through=self._through,
            exists=made,
            instance=made,
            provider_id=None,
        )

    def _made(self, part: str, *, after: Sequence[Resource]) -> local.Command:
        return local.Command(
            f"{self._name}-{part}",
            create=f"toy make {part}",
            delete=f"toy delete {part}",
            logging=local.Logging.NONE,
            add_previous_output_in_env=False,
            opts=ResourceOptions(parent=self, depends_on=list(after)),
        )


def of(plan: Plan, opts: ResourceOptions | None = None) -> Toy:
    return Toy(plan, opts)
