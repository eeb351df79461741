"""Names of networks as every API of Google takes them: some do not resolve a bare one."""

from __future__ import annotations

from stacks.config.clouds import GcpSpec


def project(said: GcpSpec) -> str:
    """The project that network, subnet and firewall are in."""
    return said.network_project or said.project


def network(said: GcpSpec) -> str:
    """Of one that is there; empty: it is made."""
    return f"projects/{project(said)}/global/networks/{said.network}" if said.network else ""


def subnetwork(said: GcpSpec) -> str:
    """Of one that is there; empty: it is made."""
    where = f"projects/{project(said)}/regions/{said.region}/subnetworks"
    return f"{where}/{said.subnetwork}" if said.subnetwork else ""
