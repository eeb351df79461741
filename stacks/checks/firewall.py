"""Checks of the firewall on machines: nobody who runs updates is kept out."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import AddressValueError, IPv4Address, IPv4Network

from stacks.config.firewall import FirewallSpec
from stacks.config.problems import Problem
from stacks.config.spec import Spec

PATH = "machines.firewall"


def problems(spec: Spec) -> Iterator[Problem]:
    """A bastion that is not let in, and ports of protocols that have none."""
    said = spec.machines.firewall
    if said is None:
        return
    yield from _bastion(spec, said)
    for number, one in enumerate(said.more):
        if one.ports is not None and one.protocol not in ("tcp", "udp"):
            text = f"{one.protocol} has no ports; leave them out"
            yield Problem(f"{PATH}.more[{number}].ports", text)


def _bastion(spec: Spec, said: FirewallSpec) -> Iterator[Problem]:
    """By a name nobody knows here what machines see."""
    bastion = spec.machines.ssh.bastion
    if bastion is None or not said.ssh_from:
        return
    try:
        address = IPv4Address(bastion.address)
    except AddressValueError:
        return
    if not any(address in IPv4Network(network) for network in said.ssh_from):
        text = (
            f"does not hold the bastion {address}, through which machines are reached; add it, and "
            "the address that machines see of it where that is another one"
        )
        yield Problem(f"{PATH}.sshFrom", text)
