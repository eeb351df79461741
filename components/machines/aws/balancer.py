"""The network load balancer before the masters on AWS: it ends no TLS."""

from __future__ import annotations

import pulumi_aws as aws
from pulumi import Input, Output, Resource, ResourceOptions

from components.machines.aws.network import Network
from components.machines.aws.security_groups import Doors
from stacks.cluster import cloud_machines, clouds
from stacks.cluster.plan import Node, Plan
from stacks.config.ports import API_PORT
from stacks.providers.cloud import short_name

_IDLE_S = 6000  # the most there is; watches are silent for long


class Balancer:
    """An address in every zone, with the masters behind; nothing where the plan has none."""

    def __init__(
        self, plan: Plan, network: Network, doors: Doors, *, opts: ResourceOptions
    ) -> None:
        self.address: Input[str] | None = None
        self.balancer: aws.lb.LoadBalancer | None = None
        self.addresses: list[Input[str]] = []  # IPv4, one in each zone; of an external one its name
        self.parts: list[Resource] = []  # all there before it serves
        self._plan, self._opts, self._name = plan, opts, plan.spec.cluster.name
        self._targets: aws.lb.TargetGroup | None = None
        if plan.balancer == "none":
            return
        name = short_name(self._name, plan.balancer[:3], limit=32)
        self._targets = self._target_group(name, network)
        zones = clouds.zones(plan.spec)
        external = plan.balancer == "external"
        self.balancer = balancer = aws.lb.LoadBalancer(
            f"{self._name}-api-{plan.balancer}",
            name=name,
            load_balancer_type="network",
            internal=not external,
            security_groups=[doors.balancer().id],
            # AWS gives an external one its addresses, for as long as it lives: they count as no
            # Elastic IPs, of which an account has five at first.
            subnets=[network.public[zone] for zone in zones] if external else None,
            subnet_mappings=None if external else self._mappings(network),
            enable_cross_zone_load_balancing=True,
            tags=cloud_machines.tags(plan, name),
            # AWS makes no public one in a VPC without an internet gateway; and takes it down
            # first. One that leaves a zone is replaced: its name and inner addresses are unique.
            opts=ResourceOptions.merge(
                opts,
                ResourceOptions(depends_on=list(network.ways), delete_before_replace=True),
            ),
        )
        listener = self._listener(balancer, self._targets)
        self.parts.append(listener)
        inner = clouds.balancer_addresses(plan.spec)
        self.addresses += [balancer.dns_name] if external else inner
        self.address = balancer.dns_name if external else Output.from_input(inner[0])

    def add(self, node: Node) -> None:
        """Make a master a target, by its address, which outlives its machine."""
        if self._targets is None:
            return
        target = aws.lb.TargetGroupAttachment(
            f"{self._name}-{node.name}-balanced-{self._plan.balancer}",
            target_group_arn=self._targets.arn,
            target_id=node.address,
            port=API_PORT,
            opts=self._opts,
        )
        self.parts.append(target)

    def _listener(
        self, balancer: aws.lb.LoadBalancer, targets: aws.lb.TargetGroup
    ) -> aws.lb.Listener:
        return aws.lb.Listener(
            f"{self._name}-api-{self._plan.balancer}-listener",
            load_balancer_arn=balancer.arn,
            port=API_PORT,
            protocol="TCP",
            tcp_idle_timeout_seconds=_IDLE_S,
            default_actions=[
                aws.lb.ListenerDefaultActionArgs(type="forward", target_group_arn=targets.arn)
            ],
            tags=cloud_machines.tags(
                self._plan, short_name(self._name, self._plan.balancer[:3], limit=32)
            ),
            opts=self._opts,
        )

    def _target_group(self, name: str, network: Network) -> aws.lb.TargetGroup:
        return aws.lb.TargetGroup(
            f"{self._name}-api-{self._plan.balancer}-targets",
            name=name,
            vpc_id=network.vpc,
            port=API_PORT,
            protocol="TCP",
            target_type="ip",
            # A master that reaches itself through the balancer would else get its own address as
            # the sender, and never answer.
            preserve_client_ip="false",
            deregistration_delay=30,
            health_check=aws.lb.TargetGroupHealthCheckArgs(
                protocol="HTTPS",
                path="/readyz",
                port=str(API_PORT),
                matcher="200",
                interval=10,
                timeout=6,
                healthy_threshold=2,
                unhealthy_threshold=2,
            ),
            tags=cloud_machines.tags(self._plan, name),
            opts=self._opts,
        )

    def _mappings(self, network: Network) -> list[aws.lb.LoadBalancerSubnetMappingArgs]:
        zones, addresses = clouds.zones(self._plan.spec), clouds.balancer_addresses(self._plan.spec)
        return [
            aws.lb.LoadBalancerSubnetMappingArgs(
                subnet_id=network.subnets[zone], private_ipv4_address=address
            )
            for zone, address in zip(zones, addresses, strict=True)
        ]
