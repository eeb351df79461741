"""Security groups on AWS: one a group of machines, and the rules between them."""

from __future__ import annotations

from collections.abc import Iterator

import pulumi_aws as aws
from pulumi import Resource, ResourceOptions

from components.machines.aws.network import Network
from stacks.cluster import cloud_machines, firewall
from stacks.cluster.plan import Plan
from stacks.config.ports import API_PORT
from stacks.providers.cloud import api_clients, balancer_clients
from stacks.providers.site import Group, Rule, word

# AWS has words for a few protocols, and numbers for all (IANA).
_NUMBERS = {"all": "-1", "ipip": "4", "esp": "50"}
_GROUPS: tuple[Group, ...] = ("machine", "control", "etcd", "master", "node")


class Doors:
    """Security groups by group of machines, and all rules, which machines wait for."""

    def __init__(self, plan: Plan, network: Network, *, opts: ResourceOptions) -> None:
        self._plan, self._name, self._opts = plan, plan.spec.cluster.name, opts
        self._network = network
        cloud = cloud_machines.of_plan(plan)
        bastion: tuple[Group, ...] = ("bastion",) if cloud.access != "public" else ()
        self.groups = {group: self._group(group) for group in (*_GROUPS, *bastion)}
        self.rules: list[Resource] = []
        for rule in firewall.rules(plan):
            self.rules += self._let_in(rule)
        for group in ("machine", *bastion):
            self.rules.append(self._let_out(group, self.groups[group]))

    def balancer(self) -> aws.ec2.SecurityGroup:
        """The group of the load balancer: clients come in, masters are reached from it."""
        group = self._group("balancer")
        cloud = cloud_machines.of_plan(self._plan)
        for text in api_clients(cloud):
            self._ingress(f"balancer-from-{word(text)}", group, API_PORT, cidr_ipv4=text)
        for inner in balancer_clients(cloud, self._plan.balancer):
            self._ingress(
                f"balancer-from-{inner}",
                group,
                API_PORT,
                referenced_security_group_id=self.groups[inner].id,
            )
        self._ingress(
            "api-from-balancer",
            self.groups["master"],
            API_PORT,
            referenced_security_group_id=group.id,
        )
        self._let_out("balancer", group)
        return group

    def _group(self, what: str) -> aws.ec2.SecurityGroup:
        name = f"{self._name}-{what}"
        return aws.ec2.SecurityGroup(
            f"{name}-doors",
            name=name,
            description=f"{what} of cluster {self._name}",
            vpc_id=self._network.vpc,
            # Of the groups of a machine exactly one: to it the controller manager adds rules.
            tags=cloud_machines.tags(self._plan, name, owned=what == "node"),
            opts=self._opts,
        )

    def _let_in(self, rule: Rule) -> Iterator[Resource]:
        first, last = rule.ports or ((-1, -1) if rule.protocol == "icmp" else (None, None))
        protocol = _NUMBERS.get(rule.protocol, rule.protocol)
        given = {"from_port": first, "to_port": last, "ip_protocol": protocol}
        to = self.groups[rule.to]
        for group in rule.groups:
            yield self._rule(
                f"{rule.name}-from-{group}",
                to,
                **given,
                referenced_security_group_id=self.groups[group].id,
            )
        for text in rule.ranges:
            yield self._rule(f"{rule.name}-from-{word(text)}", to, **given, cidr_ipv4=text)

    def _ingress(
        self, name: str, to: aws.ec2.SecurityGroup, port: int, **source: object
    ) -> Resource:
        return self._rule(name, to, ip_protocol="tcp", from_port=port, to_port=port, **source)

    def _rule(self, name: str, to: aws.ec2.SecurityGroup, **given: object) -> Resource:
        made: Resource = aws.vpc.SecurityGroupIngressRule(
            f"{self._name}-{name}",
            security_group_id=to.id,
            description=name,
            tags=cloud_machines.tags(self._plan, f"{self._name}-{name}"),
            opts=self._opts,
            **given,
        )
        return made

    def _let_out(self, name: str, group: aws.ec2.SecurityGroup) -> Resource:
        """Without a rule nothing may go out: the provider takes the usual one away."""
        made: Resource = aws.vpc.SecurityGroupEgressRule(
            f"{self._name}-{name}-out",
            security_group_id=group.id,
            description=f"{name} to anywhere",
            ip_protocol="-1",
            cidr_ipv4="0.0.0.0/0",
            tags=cloud_machines.tags(self._plan, f"{self._name}-{name}-out"),
            opts=self._opts,
        )
        return made
