"""Config sections of the network, and of the way to the API."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from stacks.config.fields import Section

# A module of stacks/networks each.
NetworkName = Literal["flannel", "cilium", "none"]


class NetworkSpec(Section):
    plugin: NetworkName = Field(
        "flannel",
        description="pod network; cilium enforces NetworkPolicies, flannel does not; none leaves "
        "nodes NotReady for your own manifest; fixed when the cluster is made",
    )
    backend: Literal["vxlan", "host-gw", "native"] = Field(
        "vxlan",
        description="how packets go from node to node; by routes they go with host-gw of flannel "
        "and native of cilium, which need all nodes on one layer 2",
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
        "write the old number; default: what the machine's interface takes, less 50 for vxlan",
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
