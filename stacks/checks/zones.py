"""Checks of zones: what fails together must not hold what has to survive."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from stacks.config.fields import ZONE_LABEL
from stacks.config.problems import Problem
from stacks.config.spec import Spec
from stacks.providers import registry
from stacks.providers.places import Place


def problems(spec: Spec, places: Sequence[Place]) -> list[Problem]:
    """Zones in a place where they are not read, and labels that say something else."""
    out: list[Problem] = []
    for name, pool in spec.pools.items():
        path = f"pools.{name}"
        if pool.zones and not registry.of(spec).MADE:
            text = "does nothing for adopted machines; write the zone of each in hosts"
            out.append(Problem(f"{path}.zones", text))
        if len(set(pool.zones)) != len(pool.zones):
            listed = ", ".join(pool.zones)
            text = f"[{listed}] names a zone twice; machines take turns, so name each once"
            out.append(Problem(f"{path}.zones", text))
        if ZONE_LABEL in pool.labels and any(p.zone for p in places if p.pool == name):
            out.append(Problem(f"{path}.labels", _SAID_TWICE))
    if not registry.of(spec).MADE:
        out += [
            Problem(f"nodes.{name}.zone", "does nothing for adopted machines; write it in hosts")
            for name, node in spec.nodes.items()
            if node.zone
        ]
    zoned = {place.name for place in places if place.zone}
    out += [
        Problem(f"nodes.{name}.labels", _SAID_TWICE)
        for name, node in spec.nodes.items()
        if ZONE_LABEL in node.labels and name in zoned
    ]
    return out


_SAID_TWICE = f"`{ZONE_LABEL}` stands beside the machine's zone; leave the label out"


def warnings(spec: Spec, places: Sequence[Place]) -> list[Problem]:
    """A zone whose loss would stop etcd; members of which nobody knows what they fail with."""
    members = [place for place in places if "etcd" in spec.pools[place.pool].roles]
    if not any(place.zone for place in places):
        return []
    out = []
    unknown = [place.name for place in members if place.zone is None]
    if unknown:
        text = (
            f"{len(unknown)} of {len(members)} etcd members have no zone ({', '.join(unknown)}): "
            "what the loss of a zone costs is not known; give each one"
        )
        out.append(Problem("pools", text))
    may_go = (len(members) - 1) // 2  # and the others still are a quorum
    for zone, count in sorted(Counter(place.zone for place in members if place.zone).items()):
        if count > may_go:
            text = (
                f"zone {zone} holds {count} of {len(members)} etcd members: with it the quorum is "
                f"lost, and the API; {_spread(len(members), may_go)}"
            )
            out.append(Problem("pools", text))
    return out


def _spread(members: int, may_go: int) -> str:
    """How to place them, or that there are too few of them for any placing."""
    if may_go == 0:
        return "use 3 members in 3 zones"
    zones = -(-members // may_go)
    return f"spread them over {zones} zones, at most {may_go} in each"
