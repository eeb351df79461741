"""Checks of addresses: of the API for clients outside, and of machines that have odd ones."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import AddressValueError, IPv4Address, IPv4Network

from stacks.config import ports
from stacks.config.problems import Problem
from stacks.config.spec import Spec
from stacks.providers.places import Place


def problems(spec: Spec, places: Iterable[Place]) -> list[Problem]:
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


def _own_networks(spec: Spec) -> dict[str, IPv4Network]:
    """Of the cluster's inside, which nothing outside reaches."""
    cidrs = {"podCidr": spec.cluster.pod_cidr, "serviceCidr": spec.cluster.service_cidr}
    return {name: IPv4Network(cidr) for name, cidr in cidrs.items()}
