"""What there is of a cluster on AWS, as plain data: by name, what it is made of.

Not what AWS is sent: enough to see, without an engine, what comes, changes and goes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stacks.config.clouds import AwsSpec
from stacks.providers import cloud
from stacks.providers.aws import regions
from stacks.providers.aws.quotas import nat_zone
from stacks.providers.site import Machine, Part, Site, dns_zone, word


class _Places:
    """Where a load balancer is. One that leaves a place is replaced, and its listener with it.

    So an earlier one equals a later one that has all of its places, and perhaps more.
    """

    __slots__ = ("_all",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, all_: tuple[object, ...]) -> None:
        self._all = all_

    def __eq__(self, later: object) -> bool:
        return isinstance(later, _Places) and all(one in later._all for one in self._all)


def resources(site: Site) -> Iterator[Part]:
    """Everything around the machines of a cluster, then they."""
    said = site.spec.machines.aws
    if said is not None:
        yield from _around(site, said)
        for machine in site.machines:
            yield from _machine(site, said, machine)


def _around(site: Site, said: AwsSpec) -> Iterator[Part]:
    tags, vpc = tuple(said.labels.items()), said.vpc_id or ("made", said.cidr)
    zones = cloud.zones(site.spec, said.subnets)
    yield "aws", "account", said.account
    if said.vpc_id is None:
        yield from _network(said, zones, tags)
    bastion = ("bastion",) if said.access != "public" else ()
    for group in ("machine", "control", "etcd", "master", "node", *bastion):
        seen = said.cloud_controller if group == "node" else ""
        yield f"{group}-doors", "firewall", (vpc, seen, tags)
    for name, made_of in _rules(site):
        yield name, "firewall", (made_of, vpc, tags)
    for group in ("machine", *bastion):
        yield f"{group}-out", "firewall", (vpc, tags)
    yield from _account("nodes", said.policies, tags)
    yield "etcd-apart", "account", tags
    if bastion:
        yield from _bastion(said, vpc, tags)
    if site.balancer != "none":
        yield from _balancer(site, said, vpc, tags)
    yield from dns_zone(site, (vpc, tags))


def _network(said: AwsSpec, zones: tuple[str, ...], tags: object) -> Iterator[Part]:
    for name in ("vpc", "internet", "public-routes"):
        yield name, "network", (said.cidr, tags)
    yield "public-route", "network", said.cidr
    for zone in zones:
        subnet = said.subnets[zone]
        made, seen = (said.cidr, subnet.cidr), said.cloud_controller
        yield f"subnet-{zone}", "network", (made, seen, tags)
        if subnet.public_cidr is not None:
            public = (said.cidr, subnet.public_cidr)
            yield f"public-{zone}", "network", (public, seen, tags)
            yield f"public-{zone}-routed", "network", public
        if said.access == "public":
            yield f"subnet-{zone}-routed", "network", (made, "public")
            continue
        nat = nat_zone(said, zones, zone)
        leads_to = said.subnets[nat].public_cidr
        if nat == zone:
            yield f"nat-{zone}-address", "network", tags
            yield f"nat-{zone}", "network", (said.cidr, leads_to, tags)
        yield f"subnet-{zone}-routes", "network", (said.cidr, tags)
        yield f"subnet-{zone}-routed", "network", (made, "inside")
        yield f"subnet-{zone}-route", "network", (said.cidr, nat, leads_to)


def _rules(site: Site) -> Iterator[tuple[str, object]]:
    for rule in site.rules:
        made_of = (rule.protocol, rule.ports, rule.to)
        for group in rule.groups:
            yield f"{rule.name}-from-{group}", made_of
        for text in rule.ranges:
            yield f"{rule.name}-from-{word(text)}", made_of


def _account(whose: str, policies: Iterable[str], tags: object) -> Iterator[Part]:
    yield f"{whose}-role", "account", tags
    yield f"{whose}-profile", "account", tags
    for policy in policies:
        yield f"{whose}-{cloud.policy_name(policy)}", "account", policy


def _bastion(said: AwsSpec, vpc: object, tags: object) -> Iterator[Part]:
    name = cloud.bastion_name(said)
    yield name, "bastion", (vpc, said.bastion_machine_type, tags)
    if said.access == "tunnel":
        yield from _account(name, (regions.ssm_policy(said.region),), tags)
    else:
        # It follows the machine.
        yield f"{name}-address", "bastion", (said.bastion_machine_type, tags)


def _balancer(site: Site, said: AwsSpec, vpc: object, tags: object) -> Iterator[Part]:
    kind, zones = site.balancer, cloud.zones(site.spec, said.subnets)
    stands = [
        (
            said.subnets[z].cidr,
            said.subnets[z].public_cidr,
            said.subnets[z].id,
            said.subnets[z].public_id,
        )
        for z in zones
    ]
    inner = stands if kind == "external" else [(one[0], one[2]) for one in stands]
    places = _Places(tuple(inner))
    made_of = (kind, vpc, inner, tags)
    yield f"api-{kind}", "load balancer", made_of
    yield f"api-{kind}-listener", "load balancer", (kind, vpc, places, tags)
    yield f"api-{kind}-targets", "load balancer", (kind, vpc, tags)
    yield "balancer-doors", "firewall", (vpc, tags)
    yield "balancer-out", "firewall", (vpc, tags)
    yield "api-from-balancer", "firewall", (vpc, tags)
    for text in cloud.api_clients(said):
        yield f"balancer-from-{word(text)}", "firewall", (vpc, tags)
    for group in cloud.balancer_clients(said, kind):
        yield f"balancer-from-{group}", "firewall", (vpc, tags)


def _machine(site: Site, said: AwsSpec, machine: Machine) -> Iterator[Part]:
    tags, vpc = (said.labels, said.cloud_controller), said.vpc_id or ("made", said.cidr)
    protected, name = machine.is_etcd and said.deletion_protection, machine.name
    yield f"{name}-machine", "machines", (tags, vpc, protected, machine.groups)
    if machine.is_etcd:
        made_of = (machine.etcd_disk_gib, said.etcd_disk_type)
        yield f"{name}-etcd-disk", "machines", (made_of, tags)
        yield f"{name}-etcd-disk-attached", "machines", ()
    if said.access == "public":
        yield f"{name}-machine-address", "machines", said.labels
    if machine.is_master and site.balancer != "none":
        yield f"{name}-balanced-{site.balancer}", "load balancer", vpc
