"""Which machines a config asks for: names and addresses, before anything else is known of them."""

from __future__ import annotations

from stacks.config.fields import GIVEN_UP, PRESENT
from stacks.config.spec import Spec
from stacks.providers import registry
from stacks.providers.places import Place


def places(spec: Spec) -> tuple[Place, ...]:
    """Every machine, sorted by pool, ordinal, name.

    By nothing else: where a host is in its list must not matter, or taking one out would
    concern those behind it.
    """
    provider = registry.of(spec)
    found = [place for name in spec.pools for place in provider.places(spec, name)]
    return tuple(sorted(found, key=lambda place: (place.pool, place.ordinal, place.name)))


def present(spec: Spec) -> tuple[Place, ...]:
    """The machines that are nodes of the cluster, absent ones too, in the order of `places`."""
    return tuple(place for place in places(spec) if place.state in PRESENT)


def away(spec: Spec) -> tuple[Place, ...]:
    """The machines that are known, and no part of the cluster: given up or decommissioned."""
    states = (*GIVEN_UP, "decommissioned")
    return tuple(place for place in places(spec) if place.state in states)
