"""Versions of components in the memory of a stack."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

from stacks.catalogue import registry as catalogue
from stacks.cluster.plan import Plan
from stacks.releases import versions
from stacks.releases.versions import Versions


def as_memory(plan: Plan) -> dict[str, str]:
    """By component; of those of add-ons alone the ones that are there."""
    chosen = catalogue.chosen(plan.spec)
    return {
        item.name: getattr(plan.versions, item.name)
        for item in fields(Versions)
        if item.metadata.get("addon") in (None, *chosen)
    }


def of_memory(known: Mapping[str, str]) -> Versions:
    """What a memory holds; a component that the previous program did not bring is unknown."""
    missing = {item.name: "unknown" for item in fields(Versions)}
    if known["kubernetes"] in versions.known():
        today = versions.for_kubernetes(known["kubernetes"])
        # Of an add-on that was not there nothing has changed.
        missing |= {
            item.name: getattr(today, item.name) for item in fields(Versions) if item.metadata
        }
    return Versions(**{**missing, **{name: known[name] for name in missing if name in known}})
