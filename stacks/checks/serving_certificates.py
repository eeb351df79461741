"""Checks of names that a kubelet's serving certificate has to hold."""

from __future__ import annotations

from collections.abc import Iterable

from stacks.cluster.serving_certificates import PATH
from stacks.config.problems import Problem
from stacks.config.spec import Spec
from stacks.providers.places import Place

_LONGEST = 64 - len("system:node:")  # ub-common-name, RFC 5280 appendix A.1


def problems(spec: Spec, places: Iterable[Place]) -> list[Problem]:
    """Names that no request can hold: OpenSSL makes some, and keeps to X.520's upper bounds."""
    if spec.kubelet.serving_certificates == "self-signed":
        return []
    long: dict[str, str] = {}  # the first name of each pool of machines that are made
    for place in places:
        in_kubernetes = {"master", "worker"} & set(spec.pools[place.pool].roles)
        if in_kubernetes and len(place.name) > _LONGEST:
            path = f"pools.{place.pool}" if place.host is None else f"{place.path}.name"
            long.setdefault(path, place.name)
    text = (
        f"characters, {_LONGEST} fit into the certificate that its kubelet serves with; take a "
        f"shorter name, or set {PATH}: self-signed"
    )
    return [Problem(path, f"{name} has {len(name)} {text}") for path, name in long.items()]
