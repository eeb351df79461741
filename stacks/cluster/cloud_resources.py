"""What a plan has in a cloud: asked of the cloud, which is told what it has to know of the plan."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from stacks.cluster import api_record, cloud_machines, clouds, firewall, rotation
from stacks.cluster.plan import Node, Plan
from stacks.providers import registry
from stacks.providers.cloud import bastion_name
from stacks.providers.resources import Resource, Resources
from stacks.providers.site import Bastion, Group, Ingress, Machine, Record, Site

_EVERYBODY = ("0.0.0.0/0",)


def of_plan(plan: Plan) -> Resources:
    """All of it. Raises ValueError where machines are made in no cloud."""
    return cloud_machines.provider(plan).resources(_site(plan))


def told(plan: Plan, nodes: Iterable[str]) -> dict[str, Resource]:
    """By name, what is around all machines, and what these nodes have for themselves.

    Without the record of the API's name, which is told in words of its own.
    """
    if registry.cloud(plan.spec) is None:
        return {}
    found, names = of_plan(plan), set(nodes)
    own = (one for name, has in found.machines.items() if name in names for one in has.resources)
    around = (one for one in found.around if isinstance(one, Resource))
    return {one.name: one for one in (*around, *own)}


def _site(plan: Plan) -> Site:
    kept = (node for node in plan.away if node.state == "decommissioned")
    return Site(
        spec=plan.spec,
        zones=clouds.zones(plan.spec),
        machines=tuple(_machine(plan, node) for node in (*plan.nodes, *kept)),
        masters=tuple(node.name for node in plan.masters),
        bastion=_bastion(plan),
        rules=firewall.rules(plan),
        balancer=plan.balancer,
        balancer_addresses=clouds.balancer_addresses(plan.spec),
        api_addresses=api_record.known(plan),
        record=_record(plan),
        ingress=_ingress(plan),
        token_keys=tuple(sorted(rotation.generations(plan.spec.pki.rotation.service_account))),
    )


def _machine(plan: Plan, node: Node) -> Machine:
    made_of = cloud_machines.hardware(plan, node)
    return Machine(
        name=node.name,
        groups=(*firewall.groups(node.roles), *_behind_ingress(plan, node)),
        zone=node.zone or "",
        address=node.address,
        arch=node.arch,
        type=made_of.type,
        disk_gib=made_of.disk_gib,
        etcd_disk_gib=made_of.etcd_disk_gib,
        generation=node.generation,
        is_spot=made_of.is_spot,
    )


def _behind_ingress(plan: Plan, node: Node) -> tuple[Group, ...]:
    return ("ingress",) if node.pool in clouds.ingress_pools(plan.spec) else ()


def _ingress(plan: Plan) -> Ingress | None:
    wanted = plan.spec.front_doors.ingress
    if wanted is None:
        return None
    return Ingress(
        nodes=tuple(node.name for node in plan.nodes if _behind_ingress(plan, node)),
        clients=cloud_machines.of_plan(plan).ingress_from or _EVERYBODY,
        proxy_protocol=wanted.proxy_protocol,
    )


def _bastion(plan: Plan) -> Bastion | None:
    cloud = cloud_machines.of_plan(plan)
    if cloud.access == "public":
        return None
    return Bastion(
        name=bastion_name(cloud),
        zone=clouds.zones(plan.spec)[0],
        address=cloud_machines.bastion_address(plan),
        arch=cloud_machines.bastion_arch(plan),
        type=cloud_machines.bastion_type(plan),
        mark=cloud_machines.bastion_mark(plan),
    )


def _record(plan: Plan) -> Record | None:
    said = api_record.zone(plan.spec)
    if said is None:
        return None
    return Record(
        name=api_record.name(plan.spec),
        ttl_s=api_record.TTL_S,
        zone=said,
        checked=partial(api_record.checked, said),
    )
