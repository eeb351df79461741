"""The pod networks that there are."""

from __future__ import annotations

from stacks.config.spec import Spec
from stacks.networks import flannel, none
from stacks.networks.network import Backend, Network

NETWORKS: dict[str, Network] = {
    "flannel": flannel,
    "none": none,
}


def of(spec: Spec) -> Network:
    """The one that the config names."""
    return NETWORKS[spec.network.plugin]


def ports() -> dict[int, str]:
    """What listens on nodes for any of them: the one that a user brings often has the same."""
    return {one.port: one.what for network in NETWORKS.values() for one in network.TUNNELS}


def addons() -> tuple[str, ...]:
    """Names of their add-ons."""
    return tuple(name for network in NETWORKS.values() for name in network.ADDONS)


def backend(spec: Spec) -> Backend:
    """How it carries packets."""
    return of(spec).BACKENDS.get(spec.network.backend, Backend())
