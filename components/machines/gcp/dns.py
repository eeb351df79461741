"""The record of the API's name in Cloud DNS, and a private zone for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pulumi_gcp as gcp
from pulumi import Input, InvokeOptions, Resource, ResourceOptions

from components.machines.api_door import checked
from components.machines.gcp.network import Network
from stacks.cluster import api_record
from stacks.cluster.plan import Plan
from stacks.config.front_doors import DnsZoneSpec
from stacks.providers.cloud import zone_name


class Record:
    """Makes `<cluster>-api-name`, with a zone of its own where none is named."""

    def __init__(
        self,
        plan: Plan,
        said: DnsZoneSpec,
        network: Network,
        *,
        labels: Mapping[str, str],
        opts: ResourceOptions,
        asked: InvokeOptions,
    ) -> None:
        self._plan, self._said, self._opts = plan, said, opts
        self._zone = self._found(asked) if said.id else self._made(network, labels)

    def make(self, addresses: Sequence[Input[str]], after: Sequence[Resource]) -> Resource:
        """The record, of type A, once `after` is done."""
        record: Resource = gcp.dns.RecordSet(
            f"{self._plan.spec.cluster.name}-api-name",
            managed_zone=self._zone,
            project=self._said.project,
            name=f"{api_record.name(self._plan.spec)}.",
            type="A",
            ttl=api_record.TTL_S,
            rrdatas=list(addresses),
            opts=ResourceOptions.merge(self._opts, ResourceOptions(depends_on=list(after))),
        )
        return record

    def _found(self, asked: InvokeOptions) -> Input[str]:
        found = gcp.dns.get_managed_zone_output(
            name=self._said.id, project=self._said.project, opts=asked
        )
        name: Input[str] = found.apply(
            lambda zone: checked(
                self._said,
                zone.name,
                domain=zone.dns_name,
                private=zone.visibility == "private",
            )
        )
        return name

    def _made(self, network: Network, labels: Mapping[str, str]) -> Input[str]:
        cluster = self._plan.spec.cluster.name
        # By its domain: another one is another zone, made before this one goes.
        made = gcp.dns.ManagedZone(
            f"{cluster}-zone-{self._said.domain.replace('.', '-')}",
            name=zone_name(cluster, self._said.domain),
            dns_name=f"{self._said.domain}.",
            description=f"Names of cluster {cluster}",
            visibility="private",
            private_visibility_config=gcp.dns.ManagedZonePrivateVisibilityConfigArgs(
                networks=[
                    gcp.dns.ManagedZonePrivateVisibilityConfigNetworkArgs(
                        network_url=network.network
                    )
                ]
            ),
            labels=labels,
            opts=self._opts,
        )
        name: Input[str] = made.name
        return name
