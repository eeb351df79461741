"""The record of the API's name in Cloud DNS, and a private zone for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stacks.providers.cloud import zone_name
from stacks.providers.gcp.scope import Scope
from stacks.providers.resources import Lookup, Ref, Resource, Text, Value
from stacks.providers.site import Record

_ZONE = "zone"


def zone(scope: Scope) -> Iterator[Resource | Lookup]:
    """The one that is there, or one for the record alone."""
    record, cluster = scope.site.record, scope.site.cluster
    if record and record.zone.id:
        asked = {"name": record.zone.id, "project": record.zone.project}
        yield Lookup(_ZONE, "gcp.dns.get_managed_zone", asked)
    elif record:
        yield Resource(record.made_zone, "DNS zone", "gcp.dns.ManagedZone").of(
            name=zone_name(cluster, record.zone.domain),
            dns_name=f"{record.zone.domain}.",
            description=f"Names of cluster {cluster}",
            visibility="private",
            private_visibility_config={"networks": [{"network_url": scope.network}]},
            labels=scope.labels,
        )


def record(scope: Scope, leads: Sequence[Value]) -> Resource | None:
    """The record, of type A."""
    said = scope.site.record
    if said is None:
        return None
    return Resource("api-name", "API name", "gcp.dns.RecordSet").of(
        managed_zone=_called(said),
        project=said.zone.project,
        name=f"{said.name}.",
        type="A",
        ttl=said.ttl_s,
        rrdatas=leads,
    )


def _called(said: Record) -> Value:
    if not said.zone.id:
        return Ref(said.made_zone, "name")
    known = tuple(Ref(_ZONE, key) for key in ("name", "dns_name", "visibility"))
    return Text(
        known,
        lambda zone, domain, seen: said.checked(zone, domain=domain, private=seen == "private"),
    )
