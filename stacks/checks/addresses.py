"""Checks of addresses: of machines, of the API for clients outside, and of the port of SSH."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from ipaddress import AddressValueError, IPv4Address, IPv4Network

from stacks.checks import networks
from stacks.cluster import inventory, ports
from stacks.cluster.inventory import Place
from stacks.config import pruning
from stacks.config.problems import Problem
from stacks.config.spec import Spec

NO_HOST_KEY = (
    "is missing; run `ssh-keyscan -t ecdsa {}`, compare it with the machine's console, and write "
    "it here (or, unprotected, set machines.ssh.insecureIgnoreHostKey: true)"
)


def problems(spec: Spec, places: Sequence[Place]) -> list[Problem]:
    """Addresses that no machine can have here, or that lead elsewhere than they are to."""
    own: list[Problem] = []  # in a cloud said by check_clouds
    if spec.machines.provider == "lab":
        own = _lab_addresses(spec)
    elif spec.machines.provider == "adopt":
        own = _adopted(spec, places)
    return [*own, *_endpoint(spec, places)]


def warnings(places: Iterable[Place]) -> list[Problem]:
    """Addresses that a network of 256 keeps for itself, where nothing shows a wider one."""
    adopted = [place for place in places if place.host is not None]
    blocks = {int(IPv4Address(place.address)) >> 8 for place in adopted}
    out = []
    for place in adopted:
        block, last = divmod(int(IPv4Address(place.address)), 256)
        beyond = {0: block - 1, 255: block + 1}.get(last)
        if beyond is not None and beyond not in blocks:
            what = "the network itself" if last == 0 else "broadcast"
            text = f"{place.address} means {what} in a /24; is it that machine's own?"
            out.append(Problem(f"{place.path}.address", text))
    return out


def _adopted(spec: Spec, places: Iterable[Place]) -> list[Problem]:
    out = []
    networks = _own_networks(spec)
    for place in places:
        path, address = f"{place.path}.address", IPv4Address(place.address)
        for name, network in networks.items():
            if address in network:
                text = f"{address} is in cluster.{name} {network}; choose another network there"
                out.append(Problem(path, text))
        if address.is_link_local:
            text = f"{address} is link-local, and may be another machine's after a boot"
            out.append(Problem(path, f"{text}; give the machine an address of its own"))
        host = place.host
        asked = "ADDRESS" if pruning.is_stand_in(place.address) else place.address
        if host and host.host_key is None and not spec.machines.ssh.insecure_ignore_host_key:
            out.append(Problem(f"{place.path}.hostKey", NO_HOST_KEY.format(asked)))
    return out + _ssh_ports(spec, places)


def _own_networks(spec: Spec) -> dict[str, IPv4Network]:
    """Of the cluster's inside, which nothing outside reaches."""
    cidrs = {"podCidr": spec.cluster.pod_cidr, "serviceCidr": spec.cluster.service_cidr}
    return {name: IPv4Network(cidr) for name, cidr in cidrs.items()}


def _ssh_ports(spec: Spec, places: Iterable[Place]) -> list[Problem]:
    """sshd and a component of the node cannot listen on the same port."""
    found: dict[str, Problem] = {}
    for place in places:
        if place.host is None:
            continue
        port = place.host.port or spec.machines.ssh.port
        path = f"{place.path}.port" if place.host.port else "machines.ssh.port"
        what = ports.of_roles(spec.pools[place.pool].roles).get(port)
        if what is not None:
            text = f"{port} belongs to {what} on {place.name}; let sshd listen on another port"
            # One port for all machines is one mistake, however many it hits.
            found.setdefault(path, Problem(path, text))
    return list(found.values())


def _endpoint(spec: Spec, places: Iterable[Place]) -> list[Problem]:
    """Clients outside must find an API server behind it, or what leads there."""
    if spec.cluster.endpoint is None:
        return []
    path, host = "cluster.endpoint", spec.cluster.endpoint.partition(":")[0]
    if host == "localhost" or host.endswith(".localhost"):
        text = f"{host} is whichever machine asks; name what clients outside reach the masters by"
        return [Problem(path, text)]
    try:
        address = IPv4Address(host)
    except AddressValueError:
        return []  # a name; where it leads is not known here
    for name, network in _own_networks(spec).items():
        if address in network:
            text = f"{address} is in cluster.{name} {network}, which nobody outside reaches"
            return [Problem(path, text)]
    for place in places:
        if place.address == host and "master" not in spec.pools[place.pool].roles:
            text = f"{address} is {place.name}, where no API server listens; name a master or what"
            return [Problem(path, f"{text} points to the masters (a load balancer, a VIP)")]
        port = spec.cluster.endpoint.partition(":")[2]
        if place.address == host and port and int(port) != ports.API_PORT:
            text = f"{address} is {place.name}, where the API answers at {ports.API_PORT}; write"
            return [Problem(path, f"{text} {address}, or what points to the masters")]
    return []


def _lab_addresses(spec: Spec) -> list[Problem]:
    """First and last machine of each pool within the subnet; pools apart from each other."""
    subnet = IPv4Network(spec.machines.lab.subnet)
    if subnet.prefixlen > networks.LAB_MASKS[1]:
        return []  # said by check_networks
    low, high = int(subnet.network_address) + 3, int(subnet.broadcast_address) - 1
    out: list[Problem] = []
    taken: list[tuple[str, int, int]] = []
    for name, pool in sorted(spec.pools.items()):
        if not pool.count:
            continue
        first = inventory.lab_base(spec, pool) + 1
        last = first + pool.count - 1
        path = f"pools.{name}.addressOffset"
        span = f"{IPv4Address(first)} to {IPv4Address(last)}"
        if first < low or last > high:
            room = f"{IPv4Address(low)} to {IPv4Address(high)}"
            text = f"{span} is not within {room}; lower it, or widen machines.lab.subnet"
            out.append(Problem(path, text))
        for other, start, end in taken:
            if first <= end and start <= last:
                text = f"{span} meets the addresses of pool {other}; move it by {end - first + 1}"
                out.append(Problem(path, text))
        taken.append((name, first, last))
    return out
