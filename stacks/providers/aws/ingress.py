"""The network load balancer for what runs in the cluster on AWS."""

from __future__ import annotations

from collections.abc import Iterator

from stacks.config.ports import INGRESS_PORTS
from stacks.providers.aws import security_groups
from stacks.providers.aws.scope import Scope
from stacks.providers.cloud import short_name
from stacks.providers.resources import Kind, Options, Ref, Resource, Value
from stacks.providers.site import Machine

_KIND: Kind = "ingress"
_IDLE_S = 350  # AWS's own
ADDRESS = Ref("ingress", "dns_name")


def ingress(scope: Scope, ways: tuple[str, ...]) -> Iterator[Resource]:
    """An address in every zone, with nodes behind; `ways` lead out of the network."""
    if scope.site.ingress is None:
        return
    yield from security_groups.of_ingress(scope, scope.site.ingress.clients)
    name = short_name(scope.site.cluster, "ing", limit=32)
    yield Resource(
        "ingress",
        _KIND,
        "aws.lb.LoadBalancer",
        Options(
            # AWS makes no public one in a VPC without an internet gateway; and takes it down first.
            after=ways,
            # One that leaves a zone is replaced: its name is unique.
            stands_in=("subnets",),
            deleted_first=True,
        ),
    ).of(
        name=name,
        load_balancer_type="network",
        internal=False,
        security_groups=[security_groups.group("ingress-balancer")],
        subnets=[scope.public(zone) for zone in scope.site.zones],
        enable_cross_zone_load_balancing=True,
        tags=scope.tags(name),
    )
    for port in INGRESS_PORTS:
        yield _targets(scope, port, proxy_protocol=scope.site.ingress.proxy_protocol)
        yield _listener(scope, port)


def of_node(scope: Scope, machine: Machine) -> Iterator[Resource]:
    """Its targets, by its address, which outlives its machine."""
    wanted = scope.site.ingress
    for port in INGRESS_PORTS if wanted is not None and machine.name in wanted.nodes else ():
        type_ = "aws.lb.TargetGroupAttachment"
        yield Resource(f"{machine.name}-ingress-target-{port}", _KIND, type_).of(
            target_group_arn=Ref(_group(port), "arn"), target_id=machine.address, port=port
        )


def _group(port: int) -> str:
    return f"ingress-targets-{port}"


def _listener(scope: Scope, port: int) -> Resource:
    name = f"ingress-listener-{port}"
    forward: Value = {"type": "forward", "target_group_arn": Ref(_group(port), "arn")}
    return Resource(name, _KIND, "aws.lb.Listener").of(
        load_balancer_arn=Ref("ingress", "arn"),
        port=port,
        protocol="TCP",
        tcp_idle_timeout_seconds=_IDLE_S,
        default_actions=[forward],
        tags=scope.tags(scope.called(name)),
    )


def _targets(scope: Scope, port: int, *, proxy_protocol: bool) -> Resource:
    name = short_name(scope.site.cluster, f"ing-{port}", limit=32)
    return Resource(_group(port), _KIND, "aws.lb.TargetGroup").of(
        name=name,
        vpc_id=scope.vpc,
        port=port,
        protocol="TCP",
        target_type="ip",
        # A pod that reaches its own node through the balancer would else get the node's address as
        # the sender, and never an answer. Clients' addresses come by PROXY protocol.
        preserve_client_ip="false",
        proxy_protocol_v2=proxy_protocol,
        deregistration_delay=30,
        health_check={
            "protocol": "TCP",
            "port": str(port),
            "interval": 10,
            "timeout": 6,
            "healthy_threshold": 2,
            "unhealthy_threshold": 2,
        },
        tags=scope.tags(name),
    )
