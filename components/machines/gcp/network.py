"""The network of machines on Google Cloud: one that is there, or a new one."""

from __future__ import annotations

import pulumi_gcp as gcp
from pulumi import Input, Resource, ResourceOptions

from stacks.config.clouds import GcpSpec
from stacks.providers.gcp import networks


class Network:
    """Network and subnet; NAT where machines have no public address and the subnet is ours."""

    def __init__(self, name: str, said: GcpSpec, *, opts: ResourceOptions) -> None:
        self.ways_out: list[Resource] = []  # machines reach nothing outside before these are done
        self.network: Input[str] = networks.network(said)
        self.subnetwork: Input[str] = networks.subnetwork(said)
        if said.network is None:
            self.network = gcp.compute.Network(
                f"{name}-network",
                name=name,
                auto_create_subnetworks=False,
                routing_mode="REGIONAL",
                opts=opts,
            ).id
        if said.subnetwork is not None:
            return
        subnet = gcp.compute.Subnetwork(
            f"{name}-subnet",
            name=name,
            network=self.network,
            region=said.region,
            ip_cidr_range=said.cidr,
            private_ip_google_access=True,
            opts=opts,
        )
        self.subnetwork = subnet.id
        if said.access != "public":
            self.ways_out.append(self._nat(name, said, subnet, opts))

    def _nat(
        self, name: str, said: GcpSpec, subnet: gcp.compute.Subnetwork, opts: ResourceOptions
    ) -> Resource:
        router = gcp.compute.Router(
            f"{name}-router", name=name, network=self.network, region=said.region, opts=opts
        )
        nat: Resource = gcp.compute.RouterNat(
            f"{name}-nat",
            name=name,
            router=router.name,
            region=said.region,
            nat_ip_allocate_option="AUTO_ONLY",
            # By itself a machine has 64 ports to one address outside, for all of its pods together.
            enable_dynamic_port_allocation=True,
            enable_endpoint_independent_mapping=False,
            min_ports_per_vm=256,
            max_ports_per_vm=32768,
            source_subnetwork_ip_ranges_to_nat="LIST_OF_SUBNETWORKS",
            subnetworks=[
                gcp.compute.RouterNatSubnetworkArgs(
                    name=subnet.id, source_ip_ranges_to_nats=["ALL_IP_RANGES"]
                )
            ],
            opts=opts,
        )
        return nat
