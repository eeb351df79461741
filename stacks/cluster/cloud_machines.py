"""Machines that are made in a cloud: what the plan says of them to either provider."""

from __future__ import annotations

from dataclasses import dataclass

from stacks.cluster import clouds
from stacks.cluster.plan import Node, Plan
from stacks.config.clouds import CloudSpec
from stacks.config.fields import Arch
from stacks.providers import registry
from stacks.providers.provider import Cloud


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardware:
    """What a machine is made of."""

    type: str
    disk_gib: int
    etcd_disk_gib: int | None  # None: no etcd, no disk of its own
    pod_metadata: bool
    pod_routes: bool
    is_spot: bool
    others: tuple[object, ...]  # of the provider's own words


def provider_id(plan: Plan, node: Node, instance: str) -> str:
    """What Kubernetes knows a machine of the cloud by; `instance`: what the cloud calls it."""
    return provider(plan).machine_id(plan.spec, node.zone, instance)


def of_plan(plan: Plan) -> CloudSpec:
    """The section of a plan's cloud. Raises ValueError where machines are made in none."""
    found = clouds.settings(plan.spec)
    if found is None:
        raise _no_cloud(plan)
    return found


def provider(plan: Plan) -> Cloud:
    """The cloud. Raises ValueError where machines are made in none."""
    found = registry.cloud(plan.spec)
    if found is None:
        raise _no_cloud(plan)
    return found


def _no_cloud(plan: Plan) -> ValueError:
    return ValueError(f"provider {plan.spec.machines.provider} is not a cloud")


def bastion_address(plan: Plan) -> str | None:
    """Inner address of the bastion; None: the provider's choice."""
    return provider(plan).bastion_address(plan.spec, tunnel=of_plan(plan).access == "tunnel")


def bastion_type(plan: Plan) -> str:
    """Machine type of the bastion."""
    return provider(plan).bastion_type(plan.spec)


def bastion_arch(plan: Plan) -> Arch:
    """Its processor architecture."""
    return "arm64" if provider(plan).ARM.fullmatch(bastion_type(plan)) else "amd64"


def bastion_mark(plan: Plan) -> str | None:
    """Another one replaces the bastion: nothing on it is kept. None: as it is by default."""
    return of_plan(plan).bastion_machine_type


def hardware(plan: Plan, node: Node) -> Hardware:
    """What the machine of a node is made of, when it is made."""
    cloud, pool = of_plan(plan), plan.spec.pools[node.pool]
    said = provider(plan).said(plan.spec)
    return Hardware(
        type=clouds.machine_type(plan.spec, pool),
        disk_gib=pool.disk_gib or cloud.disk_gib,
        etcd_disk_gib=(pool.etcd_disk_gib or cloud.etcd_disk_gib) if node.is_etcd else None,
        pod_metadata=cloud.pod_metadata,
        pod_routes=cloud.pod_routes,
        is_spot=pool.spot,
        others=said.machines if said else (),
    )
