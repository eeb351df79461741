"""Checks of the firewall on machines: nobody is locked out who has to come."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from ipaddress import AddressValueError, IPv4Address

from stacks.cluster.names import spoken
from stacks.config.addresses import holds, nth
from stacks.config.problems import Problem
from stacks.config.spec import Spec
from stacks.providers import registry
from stacks.providers.places import Place

PATH = "machines.firewall"


def problems(spec: Spec, places: Iterable[Place]) -> Iterator[Problem]:
    """Machines that others would keep out, and computers that run updates or lead there."""
    said = spec.machines.firewall
    if said is None:
        return
    outside = [place.name for place in places if not holds(said.networks, place.address)]
    if outside:
        text = (
            f"has no network with the address of {spoken(outside)}, so the other machines would "
            "keep it out; add that network"
        )
        yield Problem(f"{PATH}.networks", text)
    for who, address in _who_comes(spec):
        if not holds(said.ssh_from, address):
            text = (
                f"has no network with {address}, {who}: machines would keep out whoever runs "
                "pulumi; add that network"
            )
            yield Problem(f"{PATH}.sshFrom", text)
    if not said.ssh_from and not [*_who_comes(spec)]:
        text = "is empty: machines would keep out whoever runs pulumi; name that computer's network"
        yield Problem(f"{PATH}.sshFrom", text)


def _who_comes(spec: Spec) -> Iterator[tuple[str, str]]:
    """Computers by which every login goes, as far as the config knows their addresses."""
    provider = registry.of(spec)
    own = provider.network(spec) if provider.LOCAL else None
    if own is not None:
        yield "this computer", nth(own.cidr, 1)
    bastion = spec.machines.ssh.bastion
    if bastion is not None:
        try:
            yield "the bastion", str(IPv4Address(bastion.address))
        except AddressValueError:
            return  # a name: what machines see of it nobody knows here
