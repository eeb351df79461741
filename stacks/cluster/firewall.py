"""Who may reach whom in a cloud: one table, and both providers are given the same one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

from stacks.catalogue import registry as catalogue
from stacks.cluster import cloud_machines, node_ports
from stacks.cluster.plan import Plan
from stacks.config import ports
from stacks.config.fields import Role
from stacks.config.spec import Spec
from stacks.networks import registry as networks
from stacks.providers import registry
from stacks.providers.cloud import api_clients, bastion_name
from stacks.providers.site import Group, Rule

NODE_PORTS = "node-ports"  # of Services, by TCP
SSH_PEERS = "ssh-peers"  # the rule that only the preflight of each update needs
_SSH, _API = (22, 22), (ports.API_PORT, ports.API_PORT)


def groups(roles: Iterable[Role]) -> tuple[Group, ...]:
    """The groups of rules that a machine with these roles belongs to."""
    has = set(roles)
    found: list[Group] = ["machine"]
    if has & {"etcd", "master"}:
        found.append("control")
    found += [role for role in ("etcd", "master", "loadbalancer") if role in has]
    if has & {"master", "worker"}:
        found.append("node")
    return tuple(found)


def rules(plan: Plan) -> tuple[Rule, ...]:
    """Who may reach whom, sorted by name."""
    found = [*between_machines(plan), *_of_ssh(plan), *_of_clients(plan), *_of_nodes(plan)]
    cloud = registry.cloud(plan.spec)
    if cloud and (asked := cloud.HEALTH_CHECKS.get(plan.balancer)):
        found.append(Rule(name="api-health", protocol="tcp", ports=_API, to="master", ranges=asked))
    return tuple(sorted(found, key=lambda rule: rule.name))


def between_machines(plan: Plan) -> Iterator[Rule]:
    """Of machines of the cluster alone, whoever made them; `make preflight` proves these."""
    etcd, client = (ports.ETCD_CLIENT_PORT, ports.ETCD_PEER_PORT), (ports.ETCD_CLIENT_PORT,) * 2
    node_ports = _node_ports(plan.spec)
    yield Rule(name="etcd", protocol="tcp", ports=etcd, to="etcd", groups=("etcd", "master"))
    yield Rule(name="api", protocol="tcp", ports=_API, to="master", groups=("node",))
    yield Rule(name="kubelet", protocol="tcp", ports=(10250,) * 2, to="node", groups=("master",))
    yield Rule(name=NODE_PORTS, protocol="tcp", ports=node_ports, to="node", groups=("node",))
    yield Rule(name="node-ports-udp", protocol="udp", ports=node_ports, to="node", groups=("node",))
    yield Rule(name="icmp", protocol="icmp", ports=None, to="machine", groups=("machine",))
    # Each machine's preflight sees whether it reaches masters and members, by this port.
    yield Rule(name=SSH_PEERS, protocol="tcp", ports=_SSH, to="control", groups=("machine",))
    for one in networks.tunnels(plan.spec):
        span = (one.port, one.port)
        yield Rule(name=one.name, protocol=one.protocol, ports=span, to=one.to, groups=("node",))
    for port in catalogue.ports(plan.spec):
        span = (port.port, port.port)
        yield Rule(name=port.name, protocol=port.protocol, ports=span, to="node", groups=("node",))
    if plan.spec.front_doors.etcd is not None:
        yield Rule(name="etcd-door", protocol="tcp", ports=client, to="etcd", groups=("node",))
    yield from _of_vip(plan)


def _of_vip(plan: Plan) -> Iterator[Rule]:
    """In no cloud: there is no VIP, and so no load balancers."""
    ingress = plan.spec.front_doors.ingress
    if plan.load_balancers:
        of: tuple[Group, ...] = ("loadbalancer",)
        yield Rule(name="api-vip", protocol="tcp", ports=_API, to="master", groups=of)
        if ingress is not None:
            span = (ingress.node_port,) * 2
            yield Rule(name="ingress", protocol="tcp", ports=span, to="node", groups=of)
    if plan.holders:
        holder: Group = "loadbalancer" if plan.load_balancers else "master"
        yield Rule(name="vrrp", protocol="vrrp", ports=None, to=holder, groups=(holder,))


def _of_nodes(plan: Plan) -> Iterator[Rule]:
    """What a cluster does not need by itself: which ports, the user alone knows."""
    nodes: tuple[Group, ...] = ("node",)
    if networks.of(plan.spec).OPEN:
        # The user's own: Cilium, Calico and others take ports and protocols of all kinds.
        yield Rule(name="nodes-all", protocol="all", ports=None, to="node", groups=nodes)
        return
    for one in cloud_machines.of_plan(plan).node_rules:
        first, _, last = (one.ports or "").partition("-")
        span = (int(first), int(last or first)) if first else None
        if span is None and one.protocol in ("tcp", "udp"):
            span = (1, 65535)
        yield Rule(name=one.name, protocol=one.protocol, ports=span, to="node", groups=nodes)


def _of_ssh(plan: Plan) -> Iterator[Rule]:
    cloud = cloud_machines.of_plan(plan)
    if cloud.access == "public":
        yield Rule(name="ssh", protocol="tcp", ports=_SSH, to="machine", ranges=cloud.ssh_from)
        return
    yield Rule(name="ssh", protocol="tcp", ports=_SSH, to="machine", groups=("bastion",))
    provider = registry.cloud(plan.spec)
    tunnelled = provider.TUNNEL_FROM if provider else ()
    if ranges := tunnelled if cloud.access == "tunnel" else cloud.ssh_from:
        name = f"ssh-{bastion_name(cloud)}"
        yield Rule(name=name, protocol="tcp", ports=_SSH, to="bastion", ranges=ranges)


def _of_clients(plan: Plan) -> Iterator[Rule]:
    """From networks outside: of the API, and of Services by node ports."""
    cloud, outside = cloud_machines.of_plan(plan), _node_ports(plan.spec)
    if cloud.access != "public":
        # For people: a port of their computer that leads on from there.
        yield Rule(name="api-bastion", protocol="tcp", ports=_API, to="master", groups=("bastion",))
    if clients := api_clients(cloud):
        yield Rule(name="api-clients", protocol="tcp", ports=_API, to="master", ranges=clients)
    kinds: tuple[Literal["tcp", "udp"], ...] = ("tcp", "udp")
    for kind in kinds if cloud.node_ports_from else ():
        came = cloud.node_ports_from
        yield Rule(name=f"outside-{kind}", protocol=kind, ports=outside, to="node", ranges=came)


def _node_ports(spec: Spec) -> tuple[int, int]:
    wanted = node_ports.of(spec)
    return wanted.start, wanted.stop - 1
