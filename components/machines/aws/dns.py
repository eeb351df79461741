"""The record of the API's name in Route 53, and a private zone for it."""

from __future__ import annotations

from collections.abc import Sequence

import pulumi_aws as aws
from pulumi import Input, InvokeOptions, Resource, ResourceOptions

from components.machines.api_door import checked
from components.machines.aws.network import Network
from stacks.cluster import api_record, cloud_machines
from stacks.cluster.plan import Plan
from stacks.config.front_doors import DnsZoneSpec


class Record:
    """Makes `<cluster>-api-name`, with a zone of its own where none is named."""

    def __init__(
        self,
        plan: Plan,
        said: DnsZoneSpec,
        network: Network,
        *,
        opts: ResourceOptions,
        asked: InvokeOptions,
    ) -> None:
        self._plan, self._said, self._opts = plan, said, opts
        self._zone = self._found(asked) if said.id else self._made(network)

    def make(
        self,
        addresses: Sequence[Input[str]],
        balancer: aws.lb.LoadBalancer | None,
        after: Sequence[Resource],
    ) -> Resource:
        """The record, of type A, once `after` is done.

        An alias of the load balancer, where there is one: Route 53 then takes the address of a zone
        that fails out of its answers.
        """
        aliases = None
        if balancer is not None:
            alias = aws.route53.RecordAliasArgs(
                name=balancer.dns_name, zone_id=balancer.zone_id, evaluate_target_health=True
            )
            aliases = [alias]
        record: Resource = aws.route53.Record(
            f"{self._plan.spec.cluster.name}-api-name",
            zone_id=self._zone,
            name=api_record.name(self._plan.spec),
            type="A",
            ttl=None if aliases else api_record.TTL_S,
            records=None if aliases else list(addresses),
            aliases=aliases,
            opts=ResourceOptions.merge(self._opts, ResourceOptions(depends_on=list(after))),
        )
        return record

    def _found(self, asked: InvokeOptions) -> Input[str]:
        found = aws.route53.get_zone_output(zone_id=self._said.id, opts=asked)
        number: Input[str] = found.apply(
            lambda zone: checked(
                self._said, zone.zone_id, domain=zone.name, private=zone.private_zone
            )
        )
        return number

    def _made(self, network: Network) -> Input[str]:
        cluster = self._plan.spec.cluster.name
        # By its domain: another one is another zone, made before this one goes.
        made = aws.route53.Zone(
            f"{cluster}-zone-{self._said.domain.replace('.', '-')}",
            name=self._said.domain,
            comment=f"Names of cluster {cluster}",
            vpcs=[aws.route53.ZoneVpcArgs(vpc_id=network.vpc)],
            tags=cloud_machines.tags(self._plan, f"{cluster}-zone"),
            opts=self._opts,
        )
        number: Input[str] = made.zone_id
        return number
