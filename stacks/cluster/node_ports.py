"""The ports of Services of type NodePort, which every node opens at all of its addresses."""

from __future__ import annotations

from stacks.config.spec import Spec
from stacks.releases.known_flags import port_range

FLAG = "service-node-port-range"
PATH = f"controlPlane.apiServerArgs.{FLAG}"
USUAL = range(30000, 32768)  # kube-apiserver's default


def of(spec: Spec) -> range:
    """The range that the API server was told, or its own; what cannot be read counts as its own."""
    said = spec.control_plane.api_server_args.get(FLAG)
    return (port_range(said) if said is not None else None) or USUAL


def span(ports: range) -> str:
    """For people: `30000 to 32767`."""
    return f"{ports.start} to {ports.stop - 1}"
