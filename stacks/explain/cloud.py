"""What an edit changes in a cloud, beside machines that come and go, in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from stacks.cluster import cloud_resources
from stacks.cluster.cloud_differences import Differences
from stacks.cluster.plan import Plan
from stacks.providers.resources import Kind, Resource

_SHOWN = 4


def made(plan: Plan) -> tuple[str, ...]:
    """What is around the machines of a cluster that is made, a line a kind."""
    found = cloud_resources.told(plan, ())
    return tuple(_lines(found, found, "made"))


def changed(then: Plan, plan: Plan, kept: Iterable[str]) -> tuple[str, ...]:
    """What comes and changes, a line a kind; `kept`: nodes whose machine stays."""
    both = _both(then, plan, kept)
    new = [name for name in both.now if name not in both.was]
    return (*_lines(both.now, new, "made"), *_lines(both.now, both.changed(), "changed"))


def deleted(then: Plan, plan: Plan, kept: Iterable[str]) -> tuple[str, ...]:
    """What goes, a line a kind."""
    both = _both(then, plan, kept)
    return tuple(_lines(both.was, [name for name in both.was if name not in both.now], "deleted"))


def _both(then: Plan, plan: Plan, kept: Iterable[str]) -> Differences:
    names = set(kept)
    return Differences(cloud_resources.told(then, names), cloud_resources.told(plan, names))


def _lines(found: Mapping[str, Resource], names: Iterable[str], verb: str) -> Iterator[str]:
    kinds: dict[Kind, list[str]] = {}
    for name in names:
        kinds.setdefault(found[name].kind, []).append(name)
    for kind, listed in kinds.items():
        rest = f" and {len(listed) - _SHOWN} more" if len(listed) > _SHOWN else ""
        noun = "resource is" if len(listed) == 1 else "resources are"
        yield f"{kind}: {len(listed)} {noun} {verb} ({', '.join(listed[:_SHOWN])}{rest})"
