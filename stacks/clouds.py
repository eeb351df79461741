"""Machines that are made in a cloud: what follows from the config, before any provider is asked.

Who may reach whom is one table here; both providers are given the same one.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Network
from typing import TYPE_CHECKING, Literal

from stacks import ports
from stacks.addresses import nth
from stacks.fields import Arch, Role

if TYPE_CHECKING:  # the plan and the config are made with these
    from stacks.cloud_settings import CloudSpec
    from stacks.plan import Node, Plan
    from stacks.spec import PoolSpec, Spec

Group = Literal["machine", "control", "etcd", "master", "node", "bastion"]
Balancer = Literal["none", "internal", "external"]

USER = "ops"  # made by cloud-init; may sudo
DATA = "/var/lib/kube-ha"  # where the disk of machines with etcd is mounted
LOCAL = "127.0.0.1"  # where a tunnel to the bastion begins
FIRST_OFFSET = 6  # addresses below are the provider's, the bastion's and the load balancer's
_BASTION_OFFSET, _BALANCER_OFFSET = 4, 5
# Another than the bastion's: with a change of access both are there for a time. At Google the first
# two are taken, on AWS the first four.
_GCP_TUNNEL_OFFSET, _AWS_TUNNEL_OFFSET = 3, 4
# From where IAP comes (Google Cloud, "Using IAP for TCP forwarding"). SSM's agent on the bastion
# dials out, and then itself: there nothing is let in.
_IAP = "35.235.240.0/20"
_NODE_PORTS = (30000, 32767)  # kube-apiserver's default
_VXLAN_PORT = 8472
_SSH_PORT = 22


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardware:
    """What a machine is made of."""

    type: str
    disk_gib: int
    etcd_disk_gib: int | None  # None: no etcd, no disk of its own


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Connections that are let in. Everything else that comes from elsewhere is not."""

    name: str  # unique, stable
    protocol: Literal["tcp", "udp", "icmp"]
    ports: tuple[int, int] | None  # first and last; None: the protocol has none
    to: Group
    groups: tuple[Group, ...] = ()  # of whom
    ranges: tuple[str, ...] = ()  # of which networks outside


def settings(spec: Spec) -> CloudSpec | None:
    """The section of the cloud that machines are made in; None: they are made in none."""
    if spec.machines.provider == "gcp":
        return spec.machines.gcp
    return spec.machines.aws if spec.machines.provider == "aws" else None


def in_cloud(spec: Spec) -> bool:
    """Whether machines are made in a cloud, and so counted, not listed."""
    return spec.machines.provider in ("gcp", "aws")


def has_controller(spec: Spec) -> bool:
    """Whether kubelets wait for a cloud controller manager."""
    cloud = settings(spec)
    return cloud is not None and cloud.cloud_controller == "external"


def provider_id(plan: Plan, node: Node, instance: str) -> str:
    """What Kubernetes knows a machine of the cloud by; `instance`: its name (Google), its ID (AWS).

    As the providers write it: gce.go and instances.go of cloud-provider-gcp and -aws.
    """
    gcp = plan.spec.machines.gcp
    if plan.spec.machines.provider == "gcp" and gcp is not None:
        return f"gce://{gcp.project}/{node.zone}/{instance}"
    return f"aws:///{node.zone}/{instance}"


def inner_domain(spec: Spec) -> str:
    """Domain of the names that AWS's controller manager gives nodes, ip-10-20-0-11.<domain>.

    Empty where nodes keep their own names: at Google, and without a controller manager.
    """
    aws = spec.machines.aws
    if not has_controller(spec) or spec.machines.provider != "aws" or aws is None:
        return ""
    # Amazon VPC user guide, "DNS attributes for your VPC".
    return "ec2.internal" if aws.region == "us-east-1" else f"{aws.region}.compute.internal"


def of_plan(plan: Plan) -> CloudSpec:
    """The section of a plan's cloud. Raises ValueError where machines are made in none."""
    found = settings(plan.spec)
    if found is None:
        msg = f"provider {plan.spec.machines.provider} is no cloud"
        raise ValueError(msg)
    return found


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


def bastion_address(plan: Plan) -> str | None:
    """Inner address of the bastion; None: the provider's choice."""
    spec = plan.spec
    tunnel = of_plan(plan).access == "tunnel"
    if spec.machines.gcp:
        return nth(spec.machines.gcp.cidr, _GCP_TUNNEL_OFFSET if tunnel else _BASTION_OFFSET)
    network = subnet(spec, zones(spec)[0])
    return nth(str(network), _AWS_TUNNEL_OFFSET) if tunnel and network else None


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


def hardware(plan: Plan, node: Node) -> Hardware:
    """What the machine of a node is made of, when it is made."""
    cloud, pool = of_plan(plan), plan.spec.pools[node.pool]
    return Hardware(
        type=machine_type(plan.spec, pool),
        disk_gib=pool.disk_gib or cloud.disk_gib,
        etcd_disk_gib=(pool.etcd_disk_gib or cloud.etcd_disk_gib) if node.is_etcd else None,
    )


def machine_type(spec: Spec, pool: PoolSpec) -> str:
    """The pool's machine type; empty where machines are made in no cloud."""
    found = spec.machines.gcp if spec.machines.provider == "gcp" else spec.machines.aws
    return pool.machine_type or (found.machine_type if found else "")


# Google: t2a, c4a, n4a and axion's successors end in a; AWS: a g behind the number.
_ARM = re.compile(r"(t2a|[cn]4a|a1)(-.*|\..*)?|[a-z]+[0-9]+g[a-z]*\..*")


def arch(type_: str) -> Arch:
    """The processor architecture of a machine type, by its name."""
    return "arm64" if _ARM.fullmatch(type_) else "amd64"


def groups(roles: Iterable[Role]) -> tuple[Group, ...]:
    """The groups of rules that a machine with these roles belongs to."""
    has = set(roles)
    found: list[Group] = ["machine"]
    if has & {"etcd", "master"}:
        found.append("control")
    found += [role for role in ("etcd", "master") if role in has]
    if has & {"master", "worker"}:
        found.append("node")
    return tuple(found)


def rules(plan: Plan, *, health_checks: tuple[str, ...] = ()) -> tuple[Rule, ...]:
    """Who may reach whom, sorted by name.

    `health_checks`: networks that the provider's load balancer asks from.
    """
    cloud = of_plan(plan)
    etcd = (ports.ETCD_CLIENT_PORT, ports.ETCD_PEER_PORT)
    api, node_ports = (ports.API_PORT,) * 2, _node_ports(plan.spec)
    ssh, vxlan = (_SSH_PORT,) * 2, (_VXLAN_PORT,) * 2
    found = [
        Rule(name="etcd", protocol="tcp", ports=etcd, to="etcd", groups=("etcd", "master")),
        Rule(name="api", protocol="tcp", ports=api, to="master", groups=("node",)),
        Rule(name="kubelet", protocol="tcp", ports=(10250,) * 2, to="node", groups=("master",)),
        Rule(name="node-ports", protocol="tcp", ports=node_ports, to="node", groups=("node",)),
        Rule(name="node-ports-udp", protocol="udp", ports=node_ports, to="node", groups=("node",)),
        Rule(name="icmp", protocol="icmp", ports=None, to="machine", groups=("machine",)),
        # Each machine's preflight sees whether it reaches masters and members, by this port.
        Rule(name="ssh-peers", protocol="tcp", ports=ssh, to="control", groups=("machine",)),
    ]
    if plan.spec.network.plugin == "flannel":
        found.append(Rule(name="vxlan", protocol="udp", ports=vxlan, to="node", groups=("node",)))
    if plan.spec.front_doors.etcd is not None:
        client = (ports.ETCD_CLIENT_PORT,) * 2
        found.append(
            Rule(name="etcd-door", protocol="tcp", ports=client, to="etcd", groups=("node",))
        )
    if clients := api_clients(cloud):
        found.append(
            Rule(name="api-clients", protocol="tcp", ports=api, to="master", ranges=clients)
        )
    if cloud.access == "public":
        found.append(
            Rule(name="ssh", protocol="tcp", ports=ssh, to="machine", ranges=cloud.ssh_from)
        )
    else:
        found.append(Rule(name="ssh", protocol="tcp", ports=ssh, to="machine", groups=("bastion",)))
    outside_of = {"bastion": cloud.ssh_from}
    if plan.spec.machines.provider == "gcp":
        outside_of["tunnel"] = (_IAP,)
    if ranges := outside_of.get(cloud.access):
        name = f"ssh-{bastion_name(cloud)}"
        found.append(Rule(name=name, protocol="tcp", ports=ssh, to="bastion", ranges=ranges))
    if cloud.node_ports_from:
        outside = cloud.node_ports_from
        found += [
            Rule(name=f"outside-{kind}", protocol=kind, ports=node_ports, to="node", ranges=outside)
            for kind in ("tcp", "udp")
        ]
    if health_checks and plan.balancer != "none":
        found.append(
            Rule(name="api-health", protocol="tcp", ports=api, to="master", ranges=health_checks)
        )
    return tuple(sorted(found, key=lambda rule: rule.name))


def tags(plan: Plan, name: str) -> dict[str, str]:
    """Tags of a resource on AWS, whose name is one of them."""
    cluster = plan.spec.cluster.name
    return {"Name": name, "kube-ha-cluster": cluster, **of_plan(plan).labels}


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


def _node_ports(spec: Spec) -> tuple[int, int]:
    said = spec.control_plane.api_server_args.get("service-node-port-range", "")
    found = re.fullmatch(r"([0-9]{1,5})-([0-9]{1,5})", said)
    return (int(found[1]), int(found[2])) if found else _NODE_PORTS
