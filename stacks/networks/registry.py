"""The pod networks that there are."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from stacks.config.fields import Role
from stacks.config.runtime import OWN_REGISTRIES
from stacks.config.spec import Spec
from stacks.networks import calico, cilium, flannel, none, users_own
from stacks.networks.network import Backend, Network, Tunnel

NETWORKS: dict[str, Network] = {
    "flannel": flannel,
    "cilium": cilium,
    "calico": calico,
    "none": none,
}


def of(spec: Spec) -> Network:
    """The one that the config names, or the user's own as the config describes it."""
    network, said = NETWORKS[spec.network.plugin], spec.network.own
    return users_own.described(said) if said is not None and network is none else network


def registries(spec: Spec) -> tuple[str, ...]:
    """Of every image that the product itself runs: with a mirror they are asked of it alone."""
    return (*OWN_REGISTRIES, *of(spec).REGISTRIES)


def ports(spec: Spec) -> dict[int, str]:
    """What listens on nodes for any of them: the one that a user brings often has the same."""
    there = (*NETWORKS.values(), of(spec))
    return {one.port: one.what for network in there for one in network.TUNNELS}


def local_ports(spec: Spec, roles: Collection[Role]) -> dict[int, str]:
    """Where programs of the chosen one listen on a machine with these roles, at 127.0.0.1."""
    network, ports = of(spec), dict[int, str]()
    if "master" in roles or "worker" in roles:
        ports |= network.LOCAL_PORTS
    if "master" in roles:
        ports |= network.MASTER_LOCAL_PORTS
    return ports


def with_setting(key: str) -> list[str]:
    """Names of those that follow a key of section `network`."""
    return [name for name, network in NETWORKS.items() if key in network.SETTINGS]


def tunnels(spec: Spec) -> tuple[Tunnel, ...]:
    """Of the chosen one, those that its backend and settings use."""
    said = spec.network
    return tuple(
        one
        for one in of(spec).TUNNELS
        if (not one.backends or said.backend in one.backends)
        and (not one.setting or getattr(said, one.setting))
    )


def follows(spec: Spec, key: str) -> bool:
    """Whether the chosen one follows a key of section `network` with its backend."""
    owners = [name for name, one in of(spec).BACKENDS.items() if key in one.settings]
    return key in of(spec).SETTINGS and (not owners or spec.network.backend in owners)


def cuts(before: Spec, now: Spec) -> Iterator[tuple[str, str]]:
    """Keys of section `network` whose change cuts pods of nodes off from each other -> how."""
    network = of(now)
    for key, how in network.CUTS.items():
        old, new = (getattr(one.network, key) for one in (before, now))
        followed = any(follows(one, key) for one in (before, now))
        if old != new and followed and not network.is_smooth(key, before.network, now.network):
            yield key, how


def backend(spec: Spec) -> Backend:
    """How it carries packets."""
    return of(spec).BACKENDS.get(spec.network.backend, Backend())
