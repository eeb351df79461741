"""Machines that are made in a cloud: what the plan says of them to either provider."""

from __future__ import annotations

from dataclasses import dataclass

from stacks.cluster import clouds
from stacks.cluster.addresses import nth
from stacks.cluster.clouds import BASTION_OFFSET
from stacks.cluster.plan import Node, Plan
from stacks.config.clouds import CloudSpec

# Another than the bastion's: with a change of access both are there for a time. At Google the first
# two are taken, on AWS the first four.
_GCP_TUNNEL_OFFSET, _AWS_TUNNEL_OFFSET = 3, 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardware:
    """What a machine is made of."""

    type: str
    disk_gib: int
    etcd_disk_gib: int | None  # None: no etcd, no disk of its own


def provider_id(plan: Plan, node: Node, instance: str) -> str:
    """What Kubernetes knows a machine of the cloud by; `instance`: its name (Google), its ID (AWS).

    As the providers write it: gce.go and instances.go of cloud-provider-gcp and -aws.
    """
    gcp = plan.spec.machines.gcp
    if plan.spec.machines.provider == "gcp" and gcp is not None:
        return f"gce://{gcp.project}/{node.zone}/{instance}"
    return f"aws:///{node.zone}/{instance}"


def of_plan(plan: Plan) -> CloudSpec:
    """The section of a plan's cloud. Raises ValueError where machines are made in none."""
    found = clouds.settings(plan.spec)
    if found is None:
        msg = f"provider {plan.spec.machines.provider} is not a cloud"
        raise ValueError(msg)
    return found


def bastion_address(plan: Plan) -> str | None:
    """Inner address of the bastion; None: the provider's choice."""
    spec = plan.spec
    tunnel = of_plan(plan).access == "tunnel"
    if spec.machines.gcp:
        return nth(spec.machines.gcp.cidr, _GCP_TUNNEL_OFFSET if tunnel else BASTION_OFFSET)
    network = clouds.subnet(spec, clouds.zones(spec)[0])
    return nth(str(network), _AWS_TUNNEL_OFFSET) if tunnel and network else None


def hardware(plan: Plan, node: Node) -> Hardware:
    """What the machine of a node is made of, when it is made."""
    cloud, pool = of_plan(plan), plan.spec.pools[node.pool]
    return Hardware(
        type=clouds.machine_type(plan.spec, pool),
        disk_gib=pool.disk_gib or cloud.disk_gib,
        etcd_disk_gib=(pool.etcd_disk_gib or cloud.etcd_disk_gib) if node.is_etcd else None,
    )


def tags(plan: Plan, name: str) -> dict[str, str]:
    """Tags of a resource on AWS, whose name is one of them."""
    cluster = plan.spec.cluster.name
    return {"Name": name, "kube-ha-cluster": cluster, **of_plan(plan).labels}
