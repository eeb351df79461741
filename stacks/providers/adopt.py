"""Machines that are there, reached over SSH as the config says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from ipaddress import IPv4Address, IPv4Network

from stacks.config import ports, pruning
from stacks.config.machines import LabSpec
from stacks.config.problems import Problem
from stacks.config.spec import Spec
from stacks.providers import places as pools
from stacks.providers.places import Place

NAME = "adopt"
MADE = False
LOCAL = False
MAKER = "their owner"
PLACE = "at their owner's"
FIXED: Mapping[str, str] = {}
_NO_HOST_KEY = (
    "is missing; `make hostkeys STACK=...` prints that of {}: compare it with the machine's "
    "console and write it here (or, unprotected, set machines.ssh.insecureIgnoreHostKey: true)"
)


def places(spec: Spec, name: str) -> list[Place]:
    """Those that the pool lists."""
    return pools.listed(spec, name)


def network(_spec: Spec) -> None:
    """Their owner knows it."""


def mirror(_spec: Spec) -> None:
    """None comes with them."""


def problems(spec: Spec, places: Sequence[Place]) -> Iterator[Problem]:
    """Ways to machines that lead nowhere, or to anybody; addresses that none can have here."""
    if spec.machines.lab != LabSpec():
        yield Problem("machines.lab", "is for provider lab; leave it out")
    yield from _login(spec)
    for place in places:
        yield from _address(spec, place)
    yield from _ssh_ports(spec, places)
    yield from _ssh_addresses(spec, places)


def _login(spec: Spec) -> Iterator[Problem]:
    ssh = spec.machines.ssh
    if ssh.private_key_file is None and not ssh.agent:
        text = "is missing; name a private key file, or set machines.ssh.agent: true"
        yield Problem("machines.ssh.privateKeyFile", text)
    if ssh.private_key_file is not None and ssh.agent:
        text = "stands beside privateKeyFile; leave one of them out"
        yield Problem("machines.ssh.agent", text)
    bastion = ssh.bastion
    if bastion is not None and bastion.host_key is None and not ssh.insecure_ignore_host_key:
        yield Problem("machines.ssh.bastion.hostKey", _NO_HOST_KEY.format(bastion.address))


def _address(spec: Spec, place: Place) -> Iterator[Problem]:
    path, address = f"{place.path}.address", IPv4Address(place.address)
    inside = {"podCidr": spec.cluster.pod_cidr, "serviceCidr": spec.cluster.service_cidr}
    for name, network in ((key, IPv4Network(cidr)) for key, cidr in inside.items()):
        if address in network:
            text = f"{address} is in cluster.{name} {network}; choose another network there"
            yield Problem(path, text)
    if address.is_link_local:
        text = f"{address} is link-local, and may be another machine's after a boot"
        yield Problem(path, f"{text}; give the machine an address of its own")
    host = place.host
    asked = "ADDRESS" if pruning.is_stand_in(place.address) else place.address
    if host and host.host_key is None and not spec.machines.ssh.insecure_ignore_host_key:
        yield Problem(f"{place.path}.hostKey", _NO_HOST_KEY.format(asked))


def _ssh_ports(spec: Spec, places: Sequence[Place]) -> Iterator[Problem]:
    """sshd and a component of the node cannot listen on the same port."""
    seen: set[str] = set()
    for place in places:
        if place.host is None:
            continue
        port = place.host.port or spec.machines.ssh.port
        path = f"{place.path}.port" if place.host.port else "machines.ssh.port"
        what = ports.of_roles(spec.pools[place.pool].roles).get(port)
        # One port for all machines is one mistake, however many it hits.
        if what is not None and path not in seen:
            seen.add(path)
            text = f"{port} belongs to {what} on {place.name}; let sshd listen on another port"
            yield Problem(path, text)


def _ssh_addresses(spec: Spec, places: Sequence[Place]) -> Iterator[Problem]:
    """One SSH server is one machine. Behind one address there may be many, each at its port."""
    vip = spec.front_doors.vip
    seen: dict[tuple[str, int], Place] = {}
    # Those that say nothing come first: who names another's address is the one to correct.
    for place in sorted(
        places, key=lambda one: one.host is not None and bool(one.host.ssh_address)
    ):
        if place.host is None:
            continue
        own = place.host.ssh_address
        where = own or place.address, place.host.port or spec.machines.ssh.port
        first = seen.setdefault(where, place)
        path = f"{place.path}.sshAddress"
        if own and first is not place:
            text = f"{own}, port {where[1]}, is the way to {first.name} ({first.path})"
            yield Problem(path, f"{text}; each machine has its own address or port")
        if own and vip is not None and own == vip.address:
            text = f"{own} is the VIP, which moves between machines; name an address that stays"
            yield Problem(path, text)
