"""Checks of a record that the stack makes: a zone that can hold it, addresses in reach."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Network

from stacks.checks.outside import within
from stacks.cluster import api_record, clouds, inventory
from stacks.config.clouds import CloudSpec
from stacks.config.front_doors import DnsZoneSpec
from stacks.config.problems import Problem
from stacks.config.spec import Spec
from stacks.providers import registry

_DNS, _ZONE = "frontDoors.dns", "frontDoors.zone"


def problems(spec: Spec) -> Iterator[Problem]:
    """Everything about a managed record but for its name being one."""
    doors = spec.front_doors
    if doors.dns != "managed":
        if doors.zone is not None:
            yield Problem(_ZONE, f"does nothing with dns {doors.dns}; write dns: managed too")
        return
    made_in = registry.cloud(spec)
    if made_in is None or not made_in.DNS_ZONE:
        of = " or ".join(name for name, one in registry.CLOUDS.items() if one.DNS_ZONE)
        text = f"managed is by the DNS of {of}, machines are of {registry.of(spec).NAME}"
        yield Problem(_DNS, f"{text}; write unmanaged, or none")
    if made_in is not None and not made_in.DNS_ZONE:
        return
    if doors.zone is None:
        yield Problem(_ZONE, "is missing; write the domain and the id of the zone for the record")
        return
    yield from _zone(spec, doors.zone)
    cloud = clouds.settings(spec)
    if cloud is not None:
        yield from _reach(spec, doors.zone, cloud)


def _zone(spec: Spec, zone: DnsZoneSpec) -> Iterator[Problem]:
    cloud, domain, host = registry.cloud(spec), zone.domain, api_record.name(spec)
    named = any(letter.isalpha() for letter in host)  # an address is told by check_front_doors
    if named and not within(host, domain):
        yield Problem("cluster.endpoint", f"{host} is not a name in {_ZONE}.domain, {domain}")
    if named and within(host, spec.cluster.dns_domain):
        text = f"{host} is in cluster.dnsDomain, which pods look up inside the cluster alone"
        yield Problem("cluster.endpoint", f"{text}; choose another domain")
    if zone.id is None and not zone.private:
        text = "is missing: a public zone has to be there, for only who holds the domain above it"
        yield Problem(f"{_ZONE}.id", f"{text} can point to it; name it, or write private: true")
    if zone.id is not None and cloud is not None and not cloud.is_dns_zone(zone.id):
        text = f"{zone.id} is not a zone of {cloud.NAME}; write {cloud.DNS_ZONE}"
        yield Problem(f"{_ZONE}.id", text)
    has_project = cloud is not None and cloud.DNS_ZONE_PROJECT
    if zone.project is not None and (not has_project or zone.id is None):
        text = "is of a zone of Google that is there; leave it out"
        yield Problem(f"{_ZONE}.project", text)


def _reach(spec: Spec, zone: DnsZoneSpec, cloud: CloudSpec) -> Iterator[Problem]:
    places = inventory.present(spec)
    masters = sum("master" in spec.pools[place.pool].roles for place in places)
    kind, where = clouds.balancer(spec, masters), clouds.path(spec)
    if kind == "external" and zone.private:
        text = "an external load balancer is for clients outside, who do not see a private zone"
        yield Problem(f"{_ZONE}.private", f"{text}; name a public one")
    by_default = kind == "internal" and cloud.api_load_balancer is None
    if by_default and cloud.access == "public" and not zone.private:
        text = (
            "is missing: by default clients of public masters would be led to an internal load "
            "balancer, which nobody outside reaches; write external, or none for the masters' own "
            "addresses (internal, if all clients are in the network)"
        )
        yield Problem(f"{where}.apiLoadBalancer", text)
    if kind == "external" and cloud.api_from:
        came = [IPv4Network(text) for text in cloud.ssh_from]
        let_in = [IPv4Network(text) for text in cloud.api_from]
        if came and not any(one.overlaps(other) for one in came for other in let_in):
            text = (
                "has no network of sshFrom: from there the load balancer is asked whether it "
                "serves, before the record points to it; add the one that runs pulumi"
            )
            yield Problem(f"{where}.apiFrom", text)
