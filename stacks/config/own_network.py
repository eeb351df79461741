"""Config section of a pod network that the user brings: what the rest has to know of it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from stacks.config.fields import KernelModule, KernelSetting, KernelValue, Port, Rollout, Section


class OwnPortSpec(Section):
    protocol: Literal["tcp", "udp"] = Field(description="protocol")
    port: Port = Field(description="that its programs listen on, for those of other nodes")
    to: Literal["node", "master"] = Field(
        "node", description="who listens: every node, or control plane nodes alone"
    )


class OwnNetworkSpec(Section):
    rollouts: tuple[Rollout, ...] = Field(
        (),
        description="what has to be rolled out, each as namespace/daemonset/name; with one or more "
        "nodes have to become Ready, and the gate proves pods, Services and DNS",
    )
    ports: tuple[OwnPortSpec, ...] | None = Field(
        None,
        description="ports between nodes; a cloud's firewall opens these and nodeRules, and "
        "`make preflight` tries them; default: not known, so all are open",
    )
    mtu_overhead: Annotated[int, Field(ge=0, le=200)] = Field(
        0, description="bytes around a pod's packet; machines have to take network.mtu and these"
    )
    kernel_modules: tuple[KernelModule, ...] = Field(
        (), description="of the kernel: preflight looks for them, and nodes load them at each boot"
    )
    sysctls: dict[KernelSetting, KernelValue] = Field(
        default_factory=dict, description="kernel settings of nodes below net."
    )
    policies: bool = Field(default=False, description="whether it enforces NetworkPolicies")
