"""Machines that are made in a cloud: what follows from the config, before any provider is asked."""

from __future__ import annotations

import hashlib
import re
from ipaddress import IPv4Network
from typing import Literal

from stacks.cluster.addresses import nth
from stacks.config.clouds import CloudSpec
from stacks.config.fields import Arch
from stacks.config.pools import PoolSpec
from stacks.config.spec import Spec

Balancer = Literal["none", "internal", "external"]

USER = "ops"  # made by cloud-init; may sudo
DATA = "/var/lib/kube-ha"  # where the disk of machines with etcd is mounted
LOCAL = "127.0.0.1"  # where a tunnel to the bastion begins
FIRST_OFFSET = 6  # addresses below are the provider's, the bastion's and the load balancer's
BASTION_OFFSET, _BALANCER_OFFSET = 4, 5


def settings(spec: Spec) -> CloudSpec | None:
    """The section of the cloud that machines are made in; None: they are made in none."""
    if spec.machines.provider == "gcp":
        return spec.machines.gcp
    return spec.machines.aws if spec.machines.provider == "aws" else None


def policy_name(arn: str) -> str:
    """What a policy of the machines' role is called in the name of its resource."""
    return arn.rpartition("/")[2].lower()


def role_name(role: str) -> str:
    """The same of a role of the machines' service account."""
    return role.rpartition("/")[2].lower().replace(".", "-")


def in_cloud(spec: Spec) -> bool:
    """Whether machines are made in a cloud, and so counted, not listed."""
    return spec.machines.provider in ("gcp", "aws")


def has_controller(spec: Spec) -> bool:
    """Whether kubelets wait for a cloud controller manager."""
    cloud = settings(spec)
    return cloud is not None and cloud.cloud_controller == "external"


def inner_domain(spec: Spec) -> str:
    """Domain of the names that AWS's controller manager gives nodes, ip-10-20-0-11.<domain>.

    Empty where nodes keep their own names: at Google, and without a controller manager.
    """
    aws = spec.machines.aws
    if not has_controller(spec) or spec.machines.provider != "aws" or aws is None:
        return ""
    # Amazon VPC user guide, "DNS attributes for your VPC".
    return "ec2.internal" if aws.region == "us-east-1" else f"{aws.region}.compute.internal"


def subnet(spec: Spec, zone: str | None) -> IPv4Network | None:
    """The network that machines of a zone have their addresses of; None: not known."""
    machines = spec.machines
    if machines.provider == "gcp":
        return IPv4Network(machines.gcp.cidr) if machines.gcp else None
    found = machines.aws.subnets.get(zone or "") if machines.aws else None
    return IPv4Network(found.cidr) if found else None


def balancer(spec: Spec, masters: int) -> Balancer:
    """The load balancer before so many masters: what the user said, else one for two or more."""
    cloud = settings(spec)
    if cloud is None:
        return "none"
    return cloud.api_load_balancer or ("internal" if masters > 1 else "none")


def balancer_addresses(spec: Spec) -> tuple[str, ...]:
    """Addresses kept for the internal load balancer, whether there is one now or not.

    Certificates hold them from the start, so that it can come and go.
    """
    if spec.machines.provider == "gcp" and spec.machines.gcp:
        return (nth(spec.machines.gcp.cidr, _BALANCER_OFFSET),)
    if spec.machines.provider == "aws" and spec.machines.aws:
        subnets = spec.machines.aws.subnets
        return tuple(nth(subnets[zone].cidr, _BALANCER_OFFSET) for zone in zones(spec))
    return ()


def bastion_name(cloud: CloudSpec) -> str:
    """What the bastion is called behind the cluster's name.

    That of a tunnel is another machine: a change of access makes it before the old one goes.
    """
    return "tunnel" if cloud.access == "tunnel" else "bastion"


def way_in(spec: Spec) -> str:
    """How machines of a cloud are reached over SSH; empty where they are in none."""
    cloud = settings(spec)
    if cloud is None:
        return ""
    return f"{LOCAL}:{cloud.tunnel_port}" if cloud.access == "tunnel" else cloud.access


def api_clients(cloud: CloudSpec) -> tuple[str, ...]:
    """Networks outside from which the API is let in."""
    return cloud.api_from or cloud.ssh_from


def zones(spec: Spec) -> tuple[str, ...]:
    """Zones that machines may be made in, sorted."""
    named = {zone for pool in spec.pools.values() for zone in pool.zones}
    pinned = {node.zone for node in spec.nodes.values() if node.zone}
    known = set(spec.machines.aws.subnets) if spec.machines.aws else named | pinned
    return tuple(sorted((named | pinned) & known))


def machine_type(spec: Spec, pool: PoolSpec) -> str:
    """The pool's machine type; empty where machines are made in no cloud."""
    found = spec.machines.gcp if spec.machines.provider == "gcp" else spec.machines.aws
    return pool.machine_type or (found.machine_type if found else "")


# Google: t2a, c4a, n4a and axion's successors end in a; AWS: a g behind the number.
_ARM = re.compile(r"(t2a|[cn]4a|a1)(-.*|\..*)?|[a-z]+[0-9]+g[a-z]*\..*")


def arch(type_: str) -> Arch:
    """The processor architecture of a machine type, by its name."""
    return "arm64" if _ARM.fullmatch(type_) else "amd64"


def short_name(cluster: str, what: str, *, limit: int) -> str:
    """`<cluster>-<what>`, cut to `limit` characters; what is cut still makes a difference."""
    name = f"{cluster}-{what}"
    if len(name) <= limit:
        return name
    mark = hashlib.sha256(cluster.encode()).hexdigest()[:6]
    return f"{cluster[: limit - len(what) - 8].rstrip('-')}-{mark}-{what}"


def zone_name(cluster: str, domain: str) -> str:
    """Name of a DNS zone at Google, of at most 63 characters: one of its own for each domain."""
    return short_name(cluster, f"zone-{hashlib.sha256(domain.encode()).hexdigest()[:6]}", limit=63)
