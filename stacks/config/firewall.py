"""Config section of the firewall on machines that are in no cloud."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from stacks.config.fields import Cidr, PortSpan, Section


class LetInSpec(Section):
    protocol: Literal["tcp", "udp"] = Field(description="protocol")
    ports: PortSpan | None = Field(None, description="a port, or first-last; default: all")
    from_: tuple[Cidr, ...] = Field(
        (), alias="from", description="networks that may connect; default: all"
    )


class FirewallSpec(Section):
    networks: tuple[Cidr, ...] = Field(
        description="networks of the cluster's machines, for each other; every address of a "
        "machine has to be in one, and a machine that is added within them changes no other"
    )
    ssh_from: tuple[Cidr, ...] = Field(
        description="networks that may connect by SSH: of the computers that run pulumi, of the "
        "bastion, as machines see their addresses"
    )
    api_from: tuple[Cidr, ...] = Field(
        description="networks that may connect to the API, at masters and at the virtual IP, "
        "beside machines and pods; may be empty"
    )
    more: tuple[LetInSpec, ...] = Field(
        (),
        description="what every machine lets in besides, as ports of pods that use the network of "
        "their node",
    )
