"""The network of machines on AWS, where none is given: a VPC with subnets by zone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stacks.providers.aws.quotas import nat_zone
from stacks.providers.aws.scope import Scope
from stacks.providers.resources import Options, Ref, Resource, Value

_ROUTE, _ROUTED = "aws.ec2.Route", "aws.ec2.RouteTableAssociation"


def network(scope: Scope) -> Iterator[Resource]:
    """Nothing in a VPC that is there: routes are its owner's."""
    if scope.said.vpc_id is not None:
        return
    tags = scope.tags(scope.site.cluster)
    yield Resource("vpc", "network", "aws.ec2.Vpc").of(
        cidr_block=scope.said.cidr, enable_dns_support=True, enable_dns_hostnames=True, tags=tags
    )
    yield Resource("internet", "network", "aws.ec2.InternetGateway").of(vpc_id=scope.vpc, tags=tags)
    yield _table(scope, "public")
    yield _route("public", gateway_id=Ref("internet"))
    for zone in scope.site.zones:
        yield from _zone(scope, zone)


def ways(made: Sequence[Resource]) -> tuple[str, ...]:
    """Names of what a machine, or what faces the internet, reaches nobody without."""
    return tuple(one.name for one in made if one.type in (_ROUTE, _ROUTED))


def _zone(scope: Scope, zone: str) -> Iterator[Resource]:
    subnet, said = scope.said.subnets[zone], scope.said
    yield _subnet(scope, f"subnet-{zone}", zone, subnet.cidr)
    if subnet.public_cidr is not None:
        yield _subnet(scope, f"public-{zone}", zone, subnet.public_cidr)
        yield _routed(f"public-{zone}", "public")
    if said.access == "public":
        yield _routed(f"subnet-{zone}", "public")
        return
    # One a zone: the loss of another zone takes nobody's way out, and no traffic is charged for
    # crossing zones; or the one of all, which is in the first.
    nat = nat_zone(said, scope.site.zones, zone)
    if nat == zone:
        yield from _nat(scope, f"nat-{zone}", scope.public(zone))
    yield _table(scope, f"subnet-{zone}")
    yield _routed(f"subnet-{zone}", f"subnet-{zone}")
    yield _route(f"subnet-{zone}", nat_gateway_id=Ref(f"nat-{nat}"))


def _nat(scope: Scope, name: str, subnet: Value) -> Iterator[Resource]:
    tags, address = scope.tags(scope.called(name)), f"{name}-address"
    yield Resource(address, "network", "aws.ec2.Eip").of(domain="vpc", tags=tags)
    yield Resource(name, "network", "aws.ec2.NatGateway", Options(after=("public-route",))).of(
        subnet_id=subnet, allocation_id=Ref(address, "allocation_id"), tags=tags
    )


def _subnet(scope: Scope, name: str, zone: str, cidr: str) -> Resource:
    return Resource(name, "network", "aws.ec2.Subnet").of(
        vpc_id=scope.vpc,
        availability_zone=zone,
        cidr_block=cidr,
        map_public_ip_on_launch=False,
        tags=scope.tags(scope.called(name), owned=True) | _role(scope, name),
    )


def _role(scope: Scope, subnet: str) -> dict[str, str]:
    """Which load balancers of Services a cloud controller manager may put there."""
    if not scope.has_controller:
        return {}
    is_public = subnet.startswith("public-") or scope.said.access == "public"
    return {f"kubernetes.io/role/{'elb' if is_public else 'internal-elb'}": "1"}


def _table(scope: Scope, what: str) -> Resource:
    name = f"{what}-routes"
    tags = scope.tags(scope.called(name))
    return Resource(name, "network", "aws.ec2.RouteTable").of(vpc_id=scope.vpc, tags=tags)


def _route(what: str, **leads: Value) -> Resource:
    """The one to anywhere."""
    table, to = Ref(f"{what}-routes"), "0.0.0.0/0"
    return Resource(f"{what}-route", "network", _ROUTE).of(
        route_table_id=table, destination_cidr_block=to, **leads
    )


def _routed(subnet: str, table: str) -> Resource:
    by = Ref(f"{table}-routes")
    return Resource(f"{subnet}-routed", "network", _ROUTED).of(
        subnet_id=Ref(subnet), route_table_id=by
    )
