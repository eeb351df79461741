"""The fully resolved plan of one cluster: plain values, sorted, no clock, no environment."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from stacks import addon_files, checks, clouds, inventory, versions
from stacks.addon_files import Addon
from stacks.addresses import nth
from stacks.fields import NodeState
from stacks.inventory import ZONE_LABEL, Place
from stacks.ports import API_PORT
from stacks.spec import HostSpec, LabSpec, PoolSpec, Role, Spec, SshSpec, TaintSpec
from stacks.versions import Versions


@dataclass(frozen=True, slots=True, kw_only=True)
class Bastion:
    address: str
    port: int
    user: str
    host_key: str | None  # None: not pinned, by the user's explicit word
    private_key_file: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ssh:
    user: str
    port: int
    host_key: str | None  # OpenSSH public key; None: not pinned, by the user's explicit word
    private_key_file: str | None  # None: the agent is used
    agent: bool
    bastion: Bastion | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    name: str  # <pool>-<ordinal> or the adopted host's; name of Kubernetes node and etcd member
    pool: str
    ordinal: int  # from 1; of an adopted host the number at the end of its name, 0 without one
    roles: tuple[Role, ...]  # sorted
    address: str  # IPv4
    arch: str  # amd64 | arm64
    zone: str | None  # what fails together: a room, a rack, a zone of a cloud
    ssh: Ssh | None  # None where the machine is made: keys are too
    labels: tuple[tuple[str, str], ...]  # sorted; pool, node exception and zone merged
    taints: tuple[TaintSpec, ...]
    state: NodeState = "active"
    generation: int = 1  # of the machine under this name

    @property
    def is_etcd(self) -> bool:
        return "etcd" in self.roles

    @property
    def is_master(self) -> bool:
        return "master" in self.roles

    @property
    def is_worker(self) -> bool:
        """A kubelet that is not a master's: runs workload only."""
        return "worker" in self.roles and not self.is_master

    @property
    def is_load_balancer(self) -> bool:
        """Runs HAProxy and keepalived alone, and is no node of Kubernetes."""
        return "loadbalancer" in self.roles

    @property
    def in_kubernetes(self) -> bool:
        return self.is_master or "worker" in self.roles

    @property
    def zone_label(self) -> dict[str, str]:
        """The label that tells the scheduler the zone; empty without one, and without a Node."""
        return {ZONE_LABEL: self.zone} if self.zone and self.in_kubernetes else {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mirror:
    """Where nodes fetch files and images from, in place of upstream."""

    url: str  # files lie below <url>/<upstream host>/<path>
    registry: str  # http(s)://host:port
    manifest: str  # path of the bundle's manifest.json, relative to the project


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    spec: Spec
    versions: Versions
    mirror: Mirror | None  # None: upstream
    nodes: tuple[Node, ...]  # sorted by pool, ordinal
    away: tuple[
        Node, ...
    ]  # lost and decommissioned ones, sorted: known, and no part of the cluster
    etcd: tuple[Node, ...]  # in rollout order
    masters: tuple[Node, ...]  # in rollout order
    workers: tuple[Node, ...]
    load_balancers: tuple[Node, ...]  # in rollout order
    etcd_stacked: bool  # every master has its own etcd member and uses only 127.0.0.1
    warnings: tuple[tuple[str, str], ...]  # (config path, text)
    addons: tuple[Addon, ...] = ()  # of the user's; sorted by name, which is their order

    @property
    def in_lab(self) -> bool:
        """Machines are made on this computer."""
        return self.spec.machines.provider == "lab"

    @property
    def made(self) -> bool:
        """Machines are made and deleted by the stack; keys and connections are its own."""
        return self.spec.machines.provider != "adopt"

    @property
    def balancer(self) -> clouds.Balancer:
        """The cloud's load balancer before the masters."""
        return clouds.balancer(self.spec, len(self.masters))

    @property
    def containers(self) -> bool:
        """Machines are containers, of the lab or adopted: some kernel settings are out of reach."""
        return self.spec.machines.containers or self.in_lab

    @property
    def api_service_ip(self) -> str:
        """The `kubernetes` Service: first address of serviceCidr, as kube-apiserver takes it."""
        return nth(self.spec.cluster.service_cidr, 1)

    @property
    def dns_service_ip(self) -> str:
        """The cluster's DNS Service: tenth address of serviceCidr, as kubeadm takes it."""
        return nth(self.spec.cluster.service_cidr, 10)

    @property
    def endpoint(self) -> str:
        """`host:port` for clients outside: what was said, a balancer, the VIP, or a master."""
        said = self.spec.cluster.endpoint
        if said is None and self.balancer == "internal":
            return f"{clouds.balancer_addresses(self.spec)[0]}:{API_PORT}"
        if said is None:
            return self.vip or f"{self.masters[0].address}:{API_PORT}"
        return said if ":" in said else f"{said}:{API_PORT}"

    @property
    def vip(self) -> str:
        """`host:port` of the virtual IP; empty where there is none."""
        vip = self.spec.front_doors.vip
        return f"{vip.address}:{vip.port}" if vip else ""

    @property
    def door_addresses(self) -> tuple[str, ...]:
        """Where a name for clients outside is to lead: the VIP, a balancer, else every master."""
        if self.balancer == "internal":
            return clouds.balancer_addresses(self.spec)
        vip = self.spec.front_doors.vip
        return (vip.address,) if vip else tuple(node.address for node in self.masters)

    @property
    def doorkeepers(self) -> tuple[Node, ...]:
        """Where the VIP lives: load balancers where there are any, else masters."""
        if self.spec.front_doors.vip is None:
            return ()
        return self.load_balancers or self.masters

    @property
    def holders(self) -> tuple[Node, ...]:
        """Who can hold the VIP by keepalived of ours, in rollout order."""
        vip = self.spec.front_doors.vip
        return self.doorkeepers if vip is not None and vip.failover == "keepalived" else ()

    @property
    def ingress(self) -> tuple[Node, ...]:
        """Who ends TLS for what runs in the cluster, in rollout order."""
        return self.doorkeepers if self.spec.front_doors.ingress is not None else ()

    def listens(self, node: Node) -> bool:
        """Whether HAProxy of the node answers at the VIP, wherever that is just now.

        Masters do so beside load balancers too: that the VIP moves there and back changes nothing
        about their HAProxy.
        """
        has_vip = self.spec.front_doors.vip is not None
        return has_vip and (node.is_master or node.is_load_balancer)

    def node(self, name: str) -> Node:
        """The node of that name. Raises KeyError."""
        for node in self.nodes:
            if node.name == name:
                return node
        raise KeyError(name)


def plan(
    spec: Spec, *, sets: Versions | None = None, addons: tuple[Addon, ...] | None = None
) -> Plan:
    """Everything that follows from a config that load() accepted, resolved.

    `sets` are the component versions of a plan of the past, `addons` what its add-ons were;
    default: those of the lock, and what lies in the files that the config names.
    """
    nodes = tuple(_node(spec, place) for place in inventory.present(spec))
    in_turn = sorted(nodes, key=_turn)
    masters = tuple(node for node in in_turn if node.is_master)
    return Plan(
        spec=spec,
        versions=sets or _versions(spec),
        mirror=_mirror(spec),
        nodes=nodes,
        away=tuple(_node(spec, place) for place in inventory.away(spec)),
        etcd=tuple(node for node in in_turn if node.is_etcd),
        masters=masters,
        workers=tuple(node for node in nodes if node.is_worker),
        load_balancers=tuple(node for node in in_turn if node.is_load_balancer),
        etcd_stacked=all(node.is_etcd for node in masters),
        warnings=tuple(sorted(checks.warnings(spec))),
        addons=addon_files.read(spec) if addons is None else addons,
    )


def _versions(spec: Spec) -> Versions:
    cluster = spec.cluster
    return versions.for_kubernetes(
        cluster.kubernetes, etcd=cluster.etcd, containerd=cluster.containerd
    )


def _turn(node: Node) -> tuple[str, int, str]:
    """By name, numbers as numbers. Not by pool: renaming one would change lists on machines."""
    return node.name.rstrip("0123456789"), node.ordinal, node.name


def _node(spec: Spec, place: Place) -> Node:
    pool = spec.pools[place.pool]
    exception = spec.nodes.get(place.name)
    node = Node(
        name=place.name,
        pool=place.pool,
        ordinal=place.ordinal,
        roles=tuple(sorted(pool.roles)),
        address=place.address,
        arch=pool.arch,
        zone=place.zone,
        ssh=_ssh(spec.machines.ssh, place.host) if place.host is not None else None,
        labels=(),
        taints=_taints(pool, exception.taints if exception else ()),
        state=place.state,
        generation=place.generation,
    )
    labels = pool.labels | (exception.labels if exception else {}) | node.zone_label
    return dataclasses.replace(node, labels=tuple(sorted(labels.items())))


def _taints(pool: PoolSpec, own: tuple[TaintSpec, ...]) -> tuple[TaintSpec, ...]:
    """The pool's taints and the node's own; for the same key and effect the node's value counts."""
    merged = {(taint.key, taint.effect): taint for taint in (*pool.taints, *own)}
    return tuple(merged[mark] for mark in sorted(merged))


def _ssh(ssh: SshSpec, host: HostSpec) -> Ssh:
    return Ssh(
        user=host.user or ssh.user,
        port=host.port or ssh.port,
        host_key=host.host_key,
        private_key_file=ssh.private_key_file,
        agent=ssh.agent,
        bastion=_bastion(ssh),
    )


def _bastion(ssh: SshSpec) -> Bastion | None:
    bastion = ssh.bastion
    if bastion is None:
        return None
    return Bastion(
        address=bastion.address,
        port=bastion.port,
        user=bastion.user,
        host_key=bastion.host_key,
        # With neither a file of its own nor one for the machines, the agent serves the bastion too.
        private_key_file=bastion.private_key_file or ssh.private_key_file,
    )


def _mirror(spec: Spec) -> Mirror | None:
    """What the config names, else the lab's own mirror, the second address of its subnet."""
    if spec.mirror is not None:
        said = spec.mirror
        return Mirror(url=said.url, registry=said.registry, manifest=said.manifest)
    return lab_mirror(spec.machines.lab) if spec.machines.provider == "lab" else None


def lab_mirror(lab: LabSpec) -> Mirror:
    """The one that comes with the machines of a lab."""
    address = nth(lab.subnet, 2)
    return Mirror(
        url=f"http://{address}:8080",
        registry=f"http://{address}:5000",
        manifest=".local/bundle/manifest.json",
    )
