"""The record of the API's name in Route 53, and a private zone for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stacks.providers.aws.scope import Scope
from stacks.providers.resources import Lookup, Ref, Resource, Text, Value
from stacks.providers.site import Record

_ZONE = "zone"


def zone(scope: Scope) -> Iterator[Resource | Lookup]:
    """The one that is there, or one for the record alone."""
    record, cluster = scope.site.record, scope.site.cluster
    if record and record.zone.id:
        yield Lookup(_ZONE, "aws.route53.get_zone", {"zone_id": record.zone.id})
    elif record:
        yield Resource(record.made_zone, "DNS zone", "aws.route53.Zone").of(
            name=record.zone.domain,
            comment=f"Names of cluster {cluster}",
            vpcs=[{"vpc_id": scope.vpc}],
            tags=scope.tags(f"{cluster}-zone"),
        )


def record(scope: Scope, leads: Sequence[Value]) -> Resource | None:
    """The record, of type A.

    An alias of the load balancer, where there is one: Route 53 then takes the address of a zone
    that fails out of its answers.
    """
    said, kind = scope.site.record, scope.site.balancer
    if said is None:
        return None
    at: dict[str, Value] = {"ttl": said.ttl_s, "records": leads}
    if kind != "none":
        name, its_zone = (Ref(f"api-{kind}", key) for key in ("dns_name", "zone_id"))
        at = {"aliases": [{"name": name, "zone_id": its_zone, "evaluate_target_health": True}]}
    return Resource("api-name", "API name", "aws.route53.Record").of(
        zone_id=_number(said), name=said.name, type="A", **at
    )


def _number(said: Record) -> Value:
    if not said.zone.id:
        return Ref(said.made_zone, "zone_id")
    known = tuple(Ref(_ZONE, key) for key in ("zone_id", "name", "private_zone"))
    return Text(
        known, lambda zone, domain, private: said.checked(zone, domain=domain, private=private)
    )
