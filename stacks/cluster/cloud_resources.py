"""What a plan has in a cloud, as plain data: by name, its kind and what it is made of.

Not what the provider is sent: enough to see, without an engine, what comes, changes and goes.
"""

from __future__ import annotations

from collections.abc import Iterable

from stacks.cluster import api_record, cloud_machines, firewall
from stacks.cluster.plan import Plan
from stacks.providers import registry
from stacks.providers.site import Kind, Machine, Site


def of_plan(plan: Plan, nodes: Iterable[str]) -> dict[str, tuple[Kind, object]]:
    """Of the plan, and of these of its nodes. Empty where machines are made in no cloud."""
    cloud, names = registry.cloud(plan.spec), set(nodes)
    if cloud is None:
        return {}
    site = Site(
        spec=plan.spec,
        balancer=plan.balancer,
        machines=tuple(
            Machine(
                name=node.name,
                groups=firewall.groups(node.roles),
                etcd_disk_gib=cloud_machines.hardware(plan, node).etcd_disk_gib,
            )
            for node in plan.nodes
            if node.name in names
        ),
        zones_of_masters=tuple(sorted({node.zone for node in plan.masters if node.zone})),
        rules=firewall.rules(plan),
        dns_zone=api_record.zone(plan.spec),
    )
    return {name: (kind, made_of) for name, kind, made_of in cloud.resources(site)}
