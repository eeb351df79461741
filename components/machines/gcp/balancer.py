"""The load balancer before the masters on Google Cloud: passthrough, so it ends no TLS."""

from __future__ import annotations

from collections.abc import Mapping

import pulumi_gcp as gcp
from pulumi import Input, Resource, ResourceOptions

from components.machines.gcp.network import Network
from stacks.cluster import clouds
from stacks.cluster.plan import Node, Plan
from stacks.config.ports import API_PORT
from stacks.providers.site import Balancer as Kind


class Balancer:
    """Groups of masters by zone behind one address; nothing where the plan has none."""

    def __init__(
        self,
        name: str,
        plan: Plan,
        network: Network,
        *,
        labels: Mapping[str, str],
        opts: ResourceOptions,
    ) -> None:
        self.address: Input[str] | None = None
        self.parts: list[Resource] = []  # all there before it serves
        self._name, self._opts = name, opts
        self._groups: dict[str, gcp.compute.InstanceGroup] = {}
        if plan.balancer == "none" or plan.spec.machines.gcp is None:
            return
        self._region = plan.spec.machines.gcp.region
        for zone in sorted({node.zone for node in plan.masters if node.zone}):
            group = f"{name}-masters-{zone}"
            self._groups[zone] = gcp.compute.InstanceGroup(
                group,
                name=group,
                zone=zone,
                network=network.network,
                # Who is in it is said by memberships, one a master.
                opts=ResourceOptions.merge(opts, ResourceOptions(ignore_changes=["instances"])),
            )
        service = self._service(plan.balancer)
        if plan.balancer == "external":
            self.address = self._external(service, labels)
        else:
            (address,) = clouds.balancer_addresses(plan.spec)
            self.address = self._internal(service, address, network, labels)

    def add(self, node: Node, instance: gcp.compute.Instance) -> None:
        """Make a master a target. A machine recreated under its name is one again."""
        group = self._groups.get(node.zone or "")
        if group is None:
            return
        membership = gcp.compute.InstanceGroupMembership(
            f"{self._name}-{node.name}-balanced",
            instance=instance.self_link,
            instance_group=group.name,
            zone=node.zone,
            opts=ResourceOptions.merge(
                self._opts,
                ResourceOptions(
                    replacement_trigger=str(node.generation),
                    delete_before_replace=True,
                    deleted_with=instance,
                ),
            ),
        )
        self.parts.append(membership)

    def _service(self, kind: Kind) -> gcp.compute.RegionBackendService:
        name = f"{self._name}-api-{kind}"
        check = gcp.compute.RegionHealthCheck(
            f"{name}-check",
            name=name,
            region=self._region,
            check_interval_sec=5,
            timeout_sec=3,
            healthy_threshold=2,
            unhealthy_threshold=2,
            https_health_check=gcp.compute.RegionHealthCheckHttpsHealthCheckArgs(
                port=API_PORT, request_path="/readyz"
            ),
            opts=self._opts,
        )
        return gcp.compute.RegionBackendService(
            f"{name}-service",
            name=name,
            region=self._region,
            protocol="TCP",
            load_balancing_scheme=kind.upper(),
            health_checks=check.id,
            connection_draining_timeout_sec=30,
            backends=[
                gcp.compute.RegionBackendServiceBackendArgs(
                    group=group.self_link, balancing_mode="CONNECTION"
                )
                for group in self._groups.values()
            ],
            opts=self._opts,
        )

    def _internal(
        self,
        service: gcp.compute.RegionBackendService,
        address: str,
        network: Network,
        labels: Mapping[str, str],
    ) -> str:
        name = f"{self._name}-api-internal"
        rule = gcp.compute.ForwardingRule(
            name,
            name=name,
            region=self._region,
            load_balancing_scheme="INTERNAL",
            ip_protocol="TCP",
            ports=[str(API_PORT)],
            ip_address=address,
            network=network.network,
            subnetwork=network.subnetwork,
            allow_global_access=True,
            backend_service=service.id,
            labels=labels,
            opts=self._opts,
        )
        self.parts.append(rule)
        return address

    def _external(
        self, service: gcp.compute.RegionBackendService, labels: Mapping[str, str]
    ) -> Input[str]:
        name = f"{self._name}-api-external"
        public = gcp.compute.Address(
            f"{name}-address",
            name=name,
            address_type="EXTERNAL",
            region=self._region,
            labels=labels,
            opts=self._opts,
        )
        rule = gcp.compute.ForwardingRule(
            name,
            name=name,
            region=self._region,
            load_balancing_scheme="EXTERNAL",
            ip_protocol="TCP",
            port_range=str(API_PORT),
            ip_address=public.address,
            backend_service=service.id,
            labels=labels,
            opts=self._opts,
        )
        self.parts.append(rule)
        address: Input[str] = public.address
        return address
