"""Config section of the firewall on machines that are in no cloud."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from stacks.config.fields import Cidr, PortSpan, Section


class LetInSpec(Section):
    protocol: Literal["tcp", "udp", "vrrp", "ipip", "esp"] = Field(description="protocol")
    ports: PortSpan | None = Field(
        None, description="of tcp and udp: a port, or first-last; default: all"
    )
    from_: tuple[Cidr, ...] = Field(
        (), alias="from", description="networks that it is let in from; default: anywhere"
    )


class FirewallSpec(Section):
    ssh_from: tuple[Cidr, ...] = Field(
        (),
        description="networks that SSH is let in from, beside the machines themselves; the "
        "computer that runs pulumi, or the bastion, has to be in one; default: anywhere",
    )
    api_from: tuple[Cidr, ...] = Field(
        (),
        description="networks that the API is let in from, at masters and at the virtual IP, "
        "beside the machines and pods; default: anywhere",
    )
    more: tuple[LetInSpec, ...] = Field(
        (), description="what every machine lets in besides, as ports of pods in the host's network"
    )
