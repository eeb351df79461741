"""Who may reach whom in a cloud: one table, and both providers are given the same one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from stacks.cluster import cloud_machines, clouds, node_ports, ports
from stacks.cluster.plan import Plan
from stacks.config.fields import Role
from stacks.config.spec import Spec

Group = Literal["machine", "control", "etcd", "master", "node", "bastion"]
# From where IAP comes (Google Cloud, "Using IAP for TCP forwarding"). SSM's agent on the bastion
# dials out, and then itself: there nothing is let in.
_IAP = "35.235.240.0/20"
_VXLAN_PORT = 8472
_SSH_PORT = 22


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Connections that are let in. Everything else that comes from elsewhere is not."""

    name: str  # unique, stable
    protocol: Literal["tcp", "udp", "icmp"]
    ports: tuple[int, int] | None  # first and last; None: the protocol has none
    to: Group
    groups: tuple[Group, ...] = ()  # of whom
    ranges: tuple[str, ...] = ()  # of which networks outside


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
    cloud = cloud_machines.of_plan(plan)
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
    if clients := clouds.api_clients(cloud):
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
        name = f"ssh-{clouds.bastion_name(cloud)}"
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


def _node_ports(spec: Spec) -> tuple[int, int]:
    wanted = node_ports.of(spec)
    return wanted.start, wanted.stop - 1
