"""Config sections of the network, and of the way to the API."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from stacks.config.fields import DnsLabel, Ipv4, Section, Zone, is_unsaid
from stacks.config.own_network import OwnNetworkSpec

# A module of stacks/networks each.
NetworkName = Literal["flannel", "cilium", "calico", "none"]
AsNumber = Annotated[int, Field(ge=1, le=4294967294)]  # RFC 6793; the last one is reserved


class BgpPeerSpec(Section):
    address: Ipv4 = Field(description="router that nodes peer with; it has to know them, too")
    as_number: AsNumber = Field(description="of the router")
    zones: tuple[Zone, ...] = Field(
        (), description="zones whose nodes peer with it, as those of its rack; empty: all nodes"
    )
    password_secret: DnsLabel | None = Field(
        None,
        description="Secret in namespace kube-system that you make, with the password of the "
        "session under key `password`; the network's account on every node may read it",
    )


class NetworkSpec(Section):
    plugin: NetworkName = Field(
        "flannel",
        description="pod network; cilium and calico enforce NetworkPolicies, flannel does not; "
        "none leaves nodes NotReady for your own manifest; fixed when the cluster is made",
    )
    backend: Literal["vxlan", "host-gw", "native", "bgp", "vxlan-across-subnets"] = Field(
        "vxlan",
        description="how packets go from node to node; by routes they go with host-gw of flannel, "
        "native of cilium and bgp of calico, which need all nodes on one layer 2, or with bgp "
        "routers that peer; with vxlan-across-subnets of calico within a subnet alone",
    )
    kube_proxy_replacement: bool = Field(
        default=False,
        description="Cilium implements services itself, and no kube-proxy runs; fixed when the "
        "cluster is made",
    )
    proxy_mode: Literal["nftables", "iptables"] = Field(
        "nftables", description="how kube-proxy implements services"
    )
    node_cidr_mask: Annotated[int, Field(ge=20, le=28)] = Field(
        24,
        description="a node's part of podCidr, in bits: 24 has addresses for 253 pods; fixed when "
        "the cluster is made",
    )
    dns_replicas: Annotated[int, Field(ge=1, le=500)] = Field(
        2, description="pods of CoreDNS, on a node each; never more than there are nodes"
    )
    mtu: Annotated[int, Field(ge=576, le=9000)] | None = Field(
        None,
        description="biggest packet of a pod in bytes; pods that run keep theirs, and to go back "
        "write the old number; of your own plugin what its manifest says, for the preflight; "
        "default: what the machine's interface takes, less 50 for vxlan",
    )
    bgp_topology: Literal["mesh", "mesh-and-reflectors", "reflectors", "peers"] = Field(
        "mesh",
        description="whom nodes have BGP sessions with: each other; route reflectors, which are "
        "nodes; each other and reflectors, on the way between both; or bgpPeers alone; default: "
        "mesh, above 100 nodes (sizing.nodes) reflectors",
    )
    bgp_reflector_pools: tuple[DnsLabel, ...] = Field(
        (),
        description="pools whose nodes are the route reflectors; default: two workers of each zone",
    )
    bgp_as_number: AsNumber = Field(64512, description="autonomous system of all nodes")
    bgp_peers: tuple[BgpPeerSpec, ...] = Field(
        (), description="routers of your own that nodes peer with, in every topology"
    )
    block_size: Annotated[int, Field(ge=20, le=30)] = Field(
        26,
        description="block of podCidr, in bits, that calico gives a node at a time; fixed when the "
        "cluster is made",
    )
    typha: bool = Field(
        default=False,
        description="programs of calico on nodes ask Typha on control plane nodes in place of the "
        "API; default: above 100 nodes (sizing.nodes)",
    )
    own: OwnNetworkSpec | None = Field(
        None,
        description="with plugin none: what has to be known of your own one "
        "(docs/install/networks.md)",
        exclude_if=is_unsaid,
    )


# An API server that ends answers for so long after it has said that it is no longer ready.
API_SHUTDOWN_DELAY_S = 15
CHECKS_TO_FALL = 2  # failed checks in a row after which HAProxy takes a master out
CHECK_TIMEOUT_S = 3


class LoadBalancingSpec(Section):
    max_connections: Annotated[int, Field(ge=100, le=100000)] = Field(
        4000, description="connections to the API that one node's HAProxy carries at a time"
    )
    check_interval_ms: Annotated[int, Field(ge=500, le=60000)] = Field(
        2000, description="time between two checks of one master by one node"
    )
    idle_timeout_h: Annotated[int, Field(ge=1, le=500)] = Field(
        24, description="silence after which a connection (a watch, an exec) is closed, in hours"
    )

    @property
    def detection_ms(self) -> int:
        """The longest that a node sends new connections to a master that is no longer ready."""
        return CHECKS_TO_FALL * self.check_interval_ms + 1000 * CHECK_TIMEOUT_S
