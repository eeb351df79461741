"""Secrets of add-ons in an edit: API servers take no other type for one that is there."""

from __future__ import annotations

from collections.abc import Iterator

from stacks.checks.refusals import Refusal
from stacks.cluster import addon_secrets
from stacks.cluster.plan import Plan
from stacks.config.addon_secrets import SecretType
from stacks.edits.memory import Memory


def refusals(before: Memory, plan: Plan) -> Iterator[Refusal]:
    """Of each Secret once, however many namespaces have it."""
    if before.plan is None:
        return
    was = {place: kind for place, _, kind in _types(before.plan)}
    told: set[str] = set()
    for place, path, kind in _types(plan):
        old = was.get(place, kind)
        if old != kind and path not in told:
            told.add(path)
            text = f"cannot change from {old!r} to {kind!r}, for a Secret keeps its type"
            way = f"set it back to {old!r}, or take another name for this Secret"
            yield Refusal("fixed", path, f"{path}.type", f"{text}; {way}")


def _types(plan: Plan) -> Iterator[tuple[tuple[str, str], str, SecretType]]:
    """(namespace and name, config path, type) of each."""
    for addon, said in sorted(plan.spec.addons.items()):
        for namespace, name in addon_secrets.places(said):
            yield (namespace, name), f"addons.{addon}.secrets.{name}", said.secrets[name].type
