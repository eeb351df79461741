"""Security groups on AWS: one a group of machines, and the rules between them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from stacks.config.ports import API_PORT, INGRESS_PORTS
from stacks.providers.aws.scope import Scope
from stacks.providers.cloud import api_clients, balancer_clients
from stacks.providers.resources import Ref, Resource, Value
from stacks.providers.site import Group, Rule, word

# AWS has words for a few protocols, and numbers for all (IANA).
_NUMBERS = {"all": "-1", "ipip": "4", "esp": "50"}
_GROUPS: tuple[Group, ...] = ("machine", "control", "etcd", "master", "node")
_API: Mapping[str, Value] = {"ip_protocol": "tcp", "from_port": API_PORT, "to_port": API_PORT}
_TYPE = "aws.ec2.SecurityGroup"


def security_groups(scope: Scope) -> Iterator[Resource]:
    """Of all groups of machines."""
    bastion: tuple[Group, ...] = ("bastion",) if scope.site.bastion else ()
    for group in (*_GROUPS, *bastion):
        yield _group(scope, group)
    for rule in scope.site.rules:
        yield from _let_in(scope, rule)
    for group in ("machine", *bastion):
        yield _let_out(scope, group)


def rules(made: Sequence[Resource]) -> tuple[str, ...]:
    """Names of the rules among them, which machines wait for."""
    return tuple(one.name for one in made if one.type != _TYPE)


def of_balancer(scope: Scope) -> Iterator[Resource]:
    """The group of the load balancer: clients come in, masters are reached from it."""
    yield _group(scope, "balancer")
    for text in api_clients(scope.said):
        yield _rule(scope, f"balancer-from-{word(text)}", "balancer", cidr_ipv4=text, **_API)
    for inner in balancer_clients(scope.said, scope.site.balancer):
        yield _rule(scope, f"balancer-from-{inner}", "balancer", **_of(inner), **_API)
    yield _rule(scope, "api-from-balancer", "master", **_of("balancer"), **_API)
    yield _let_out(scope, "balancer")


def of_ingress(scope: Scope, clients: tuple[str, ...]) -> Iterator[Resource]:
    """Groups of the load balancer for ingress, and of the nodes behind it."""
    for what in ("ingress-balancer", "ingress"):
        yield replace(_group(scope, what), kind="ingress")
    for port in INGRESS_PORTS:
        given: dict[str, Value] = {"ip_protocol": "tcp", "from_port": port, "to_port": port}
        for text in clients:
            name = f"ingress-{port}-from-{word(text)}"
            yield _of_ingress(scope, name, "ingress-balancer", cidr_ipv4=text, **given)
        name, of = f"ingress-{port}-from-balancer", _of("ingress-balancer")
        yield _of_ingress(scope, name, "ingress", **of, **given)
    yield replace(_let_out(scope, "ingress-balancer"), kind="ingress")


def _of_ingress(scope: Scope, name: str, to: str, **given: Value) -> Resource:
    return replace(_rule(scope, name, to, **given), kind="ingress")


def group(name: str) -> Ref:
    """ID of the security group of so many machines, or of the load balancer."""
    return Ref(f"{name}-doors")


def _of(name: str) -> dict[str, Value]:
    return {"referenced_security_group_id": group(name)}


def _group(scope: Scope, what: str) -> Resource:
    name = scope.called(what)
    return Resource(group(what).name, "firewall", _TYPE).of(
        name=name,
        description=f"{what} of cluster {scope.site.cluster}",
        vpc_id=scope.vpc,
        # Of the groups of a machine exactly one: to it the controller manager adds rules.
        tags=scope.tags(name, owned=what == "node"),
    )


def _let_in(scope: Scope, rule: Rule) -> Iterator[Resource]:
    first, last = rule.ports or ((-1, -1) if rule.protocol == "icmp" else (None, None))
    protocol = _NUMBERS.get(rule.protocol, rule.protocol)
    given: dict[str, Value] = {"from_port": first, "to_port": last, "ip_protocol": protocol}
    for one in rule.groups:
        yield _rule(scope, f"{rule.name}-from-{one}", rule.to, **_of(one), **given)
    for text in rule.ranges:
        yield _rule(scope, f"{rule.name}-from-{word(text)}", rule.to, cidr_ipv4=text, **given)


def _rule(scope: Scope, name: str, to: str, **given: Value) -> Resource:
    return Resource(name, "firewall", "aws.vpc.SecurityGroupIngressRule").of(
        security_group_id=group(to), description=name, tags=scope.tags(scope.called(name)), **given
    )


def _let_out(scope: Scope, what: str) -> Resource:
    """Without a rule nothing may go out: the provider takes the usual one away."""
    name = f"{what}-out"
    return Resource(name, "firewall", "aws.vpc.SecurityGroupEgressRule").of(
        security_group_id=group(what),
        description=f"{what} to anywhere",
        ip_protocol="-1",
        cidr_ipv4="0.0.0.0/0",
        tags=scope.tags(scope.called(name)),
    )
