"""The network load balancer before the masters on AWS: it ends no TLS."""

from __future__ import annotations

from collections.abc import Iterator

from stacks.config.ports import API_PORT
from stacks.providers.aws import security_groups
from stacks.providers.aws.scope import Scope
from stacks.providers.cloud import short_name
from stacks.providers.resources import Kind, Options, Ref, Resource, Value
from stacks.providers.site import Machine

_KIND: Kind = "load balancer"
_IDLE_S = 6000  # the most there is; watches are silent for long


def balancer(scope: Scope, ways: tuple[str, ...]) -> Iterator[Resource]:
    """An address in every zone, with the masters behind; `ways` lead out of the network."""
    kind = scope.site.balancer
    if kind == "none":
        return
    yield from security_groups.of_balancer(scope)
    name = short_name(scope.site.cluster, kind[:3], limit=32)
    tags = scope.tags(name)
    yield _targets(scope, name, tags)
    yield Resource(
        f"api-{kind}",
        _KIND,
        "aws.lb.LoadBalancer",
        Options(
            # AWS makes no public one in a VPC without an internet gateway; and takes it down first.
            after=ways,
            # One that leaves a zone is replaced: its name and inner addresses are unique.
            stands_in=("subnets", "subnet_mappings"),
            deleted_first=True,
        ),
    ).of(
        name=name,
        load_balancer_type="network",
        internal=kind != "external",
        security_groups=[security_groups.group("balancer")],
        **_stands_in(scope),
        enable_cross_zone_load_balancing=True,
        tags=tags,
    )
    yield Resource(f"api-{kind}-listener", _KIND, "aws.lb.Listener").of(
        load_balancer_arn=Ref(f"api-{kind}", "arn"),
        port=API_PORT,
        protocol="TCP",
        tcp_idle_timeout_seconds=_IDLE_S,
        default_actions=[
            {"type": "forward", "target_group_arn": Ref(f"api-{kind}-targets", "arn")}
        ],
        tags=tags,
    )


def of_master(scope: Scope, machine: Machine) -> Iterator[Resource]:
    """A target of it, by its address, which outlives its machine."""
    kind = scope.site.balancer
    if kind != "none" and machine.is_master:
        yield Resource(_target(machine.name, kind), _KIND, "aws.lb.TargetGroupAttachment").of(
            target_group_arn=Ref(f"api-{kind}-targets", "arn"),
            target_id=machine.address,
            port=API_PORT,
        )


def parts(scope: Scope) -> tuple[str, ...]:
    """Names of what has to be there before it serves."""
    kind = scope.site.balancer
    targets = (_target(name, kind) for name in scope.site.masters)
    return () if kind == "none" else (f"api-{kind}-listener", *targets)


def _target(node: str, kind: str) -> str:
    return f"{node}-balanced-{kind}"


def _stands_in(scope: Scope) -> dict[str, Value]:
    zones = scope.site.zones
    if scope.site.balancer == "external":
        # AWS gives it its addresses, for as long as it lives: they count as no Elastic IPs, of
        # which an account has five at first.
        return {"subnets": [scope.public(zone) for zone in zones]}
    addresses = zip(zones, scope.site.balancer_addresses, strict=True)
    return {
        "subnet_mappings": [
            {"subnet_id": scope.subnet(zone), "private_ipv4_address": address}
            for zone, address in addresses
        ]
    }


def _targets(scope: Scope, name: str, tags: Value) -> Resource:
    return Resource(f"api-{scope.site.balancer}-targets", _KIND, "aws.lb.TargetGroup").of(
        name=name,
        vpc_id=scope.vpc,
        port=API_PORT,
        protocol="TCP",
        target_type="ip",
        # A master that reaches itself through the balancer would else get its own address as the
        # sender, and never answer.
        preserve_client_ip="false",
        deregistration_delay=30,
        health_check={
            "protocol": "HTTPS",
            "path": "/readyz",
            "port": str(API_PORT),
            "matcher": "200",
            "interval": 10,
            "timeout": 6,
            "healthy_threshold": 2,
            "unhealthy_threshold": 2,
        },
        tags=tags,
    )
