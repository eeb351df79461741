"""The fully resolved plan of one cluster: plain values, sorted, no clock, no environment."""

from __future__ import annotations

from dataclasses import dataclass, field

from stacks.cluster import clouds
from stacks.cluster.outside import Sums
from stacks.cluster.user_addons import Addon
from stacks.config.addresses import nth
from stacks.config.fields import GIVEN_UP, ZONE_LABEL, GivenUp, NodeState, Role
from stacks.config.pki import Subject
from stacks.config.pools import TaintSpec
from stacks.config.ports import API_PORT
from stacks.config.spec import Spec
from stacks.providers import registry
from stacks.providers.site import Balancer
from stacks.releases.versions import Versions

API_ADDRESS = "apiAddress"  # the output that has the address of an external load balancer


@dataclass(frozen=True, slots=True, kw_only=True)
class Bastion:
    address: str
    port: int
    user: str
    host_key: str | None  # None: not pinned, by the user's explicit word
    private_key_file: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ssh:
    # Or name; the cluster knows the machine by Node.address alone. Not in the text of a node, of
    # which digests of clusters that exist are made: gate.plan_digest adds it where it is another.
    address: str = field(repr=False)
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
    # Of one in maintenance. Not in the text of a node, as Ssh.address.
    drain: bool = field(default=False, repr=False)
    keep_pods_s: int | None = field(default=None, repr=False)
    # It did not answer when this update began, and the config allows that: left out this time. Not
    # in the text of a node, as Ssh.address.
    is_silent: bool = field(default=False, repr=False)

    @property
    def turn(self) -> tuple[str, int, str]:
        """What lists on machines are sorted by: the name, numbers as numbers.

        Not the pool: renaming one would change the lists.
        """
        return self.name.rstrip("0123456789"), self.ordinal, self.name

    @property
    def is_absent(self) -> bool:
        """A member of the cluster that is not dialled, and on which nothing is changed."""
        return self.state == "absent" or self.is_silent

    @property
    def is_etcd(self) -> bool:
        return "etcd" in self.roles

    @property
    def is_given_up(self) -> bool:
        """Never dialled again, and its identity refused: lost, or in wrong hands."""
        return self.state in GIVEN_UP

    @property
    def is_master(self) -> bool:
        return "master" in self.roles

    @property
    def is_worker(self) -> bool:
        """A kubelet that is not a master's: runs workload only."""
        return "worker" in self.roles and not self.is_master

    @property
    def is_load_balancer(self) -> bool:
        """Runs HAProxy and keepalived alone, and is not a node of Kubernetes."""
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

    url: str  # files are below <url>/<upstream host>/<path>
    registry: str  # http(s)://host:port
    manifest: str  # path of the bundle's manifest.json, relative to the project


@dataclass(frozen=True, slots=True, kw_only=True)
class Fenced:
    """The incarnations of one node, up to this generation, that are not to come back."""

    name: str
    generation: int
    state: GivenUp
    # Newest generation of each key or CA that it may hold, or hold something signed by.
    keys: tuple[tuple[Subject, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    spec: Spec
    versions: Versions
    mirror: Mirror | None  # None: upstream
    nodes: tuple[Node, ...]  # sorted by pool, ordinal
    away: tuple[
        Node, ...
    ]  # given up and decommissioned ones, sorted: known, and no part of the cluster
    etcd: tuple[Node, ...]  # in rollout order
    masters: tuple[Node, ...]  # in rollout order
    workers: tuple[Node, ...]
    load_balancers: tuple[Node, ...]  # in rollout order
    etcd_stacked: bool  # every master has its own etcd member and uses only 127.0.0.1
    addons: tuple[Addon, ...] = ()  # of the user's; sorted by name, which is their order
    outside: Sums = ()  # of files that the config names, as far as they are known
    fenced: tuple[Fenced, ...] = ()  # sorted; of this config alone, until fence.kept adds the past
    warnings: tuple[tuple[str, str], ...] = ()  # (config path, text), of what load.py has checked
    acting_name: str = ""  # of the master that acts for the cluster; empty: the first one
    unreached: tuple[str, ...] = ()  # masters and members that did not answer just now

    @property
    def acting(self) -> Node:
        """The master through which the cluster is asked and changed: any that is there will do."""
        there = [node for node in self.masters if not node.is_absent] or [*self.masters]
        return next((node for node in there if node.name == self.acting_name), there[0])

    @property
    def absent(self) -> tuple[Node, ...]:
        """Members that are not dialled, as in `nodes`."""
        return tuple(node for node in self.nodes if node.is_absent)

    @property
    def nodes_and_absent(self) -> tuple[int, int]:
        """How many Nodes there are to be, and how many of them are absent."""
        nodes = [node for node in self.nodes if node.in_kubernetes]
        return len(nodes), sum(node.is_absent for node in nodes)

    @property
    def local(self) -> bool:
        """Machines live on this computer alone, as containers."""
        return registry.of(self.spec).LOCAL

    @property
    def made(self) -> bool:
        """Machines are made and deleted by the stack; keys and connections are its own."""
        return registry.of(self.spec).MADE

    @property
    def balancer(self) -> Balancer:
        """The cloud's load balancer before the masters."""
        return clouds.balancer(self.spec, len(self.masters))

    @property
    def containers(self) -> bool:
        """Machines are containers, of the lab or adopted: some kernel settings are out of reach."""
        return self.spec.machines.containers or self.local

    @property
    def api_service_ip(self) -> str:
        """The `kubernetes` Service: first address of serviceCidr, as kube-apiserver takes it."""
        return nth(self.spec.cluster.service_cidr, 1)

    @property
    def dns_service_ip(self) -> str:
        """The cluster's DNS Service: tenth address of serviceCidr, as kubeadm takes it."""
        return nth(self.spec.cluster.service_cidr, 10)

    @property
    def is_at_balancer(self) -> bool:
        """Clients outside go to an external load balancer by its address, which no config knows."""
        return self.balancer == "external" and self.spec.cluster.endpoint is None

    @property
    def endpoint(self) -> str:
        """`host:port` for clients outside: what was said, a balancer, the VIP, or a master.

        Of an external balancer the host is API_ADDRESS, the name of the output that has it.
        """
        said = self.spec.cluster.endpoint
        if self.is_at_balancer:
            return f"{API_ADDRESS}:{API_PORT}"
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
        """Who can hold the VIP by keepalived of kube-ha, in rollout order."""
        vip = self.spec.front_doors.vip
        return self.doorkeepers if vip is not None and vip.failover == "keepalived" else ()

    @property
    def ingress(self) -> tuple[Node, ...]:
        """Who ends TLS for what runs in the cluster, in rollout order."""
        return self.doorkeepers if self.spec.front_doors.ingress is not None else ()

    @property
    def has_ingress_balancer(self) -> bool:
        """The cloud has a load balancer for what runs in the cluster."""
        return bool(clouds.ingress_pools(self.spec))

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
