"""What an edit changes in a cloud, beside machines that come and go, in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from stacks.cluster import cloud_resources
from stacks.cluster.plan import Plan
from stacks.providers.site import Kind as Group

_SHOWN = 4

Found = Mapping[str, tuple[Group, object]]


def made(plan: Plan) -> tuple[str, ...]:
    """What is around the machines of a cluster that is made, a line a group."""
    found = cloud_resources.of_plan(plan, ())
    return tuple(_lines(found, found, "made"))


def changed(then: Plan, plan: Plan, kept: Iterable[str]) -> tuple[str, ...]:
    """What comes and changes, a line a group; `kept`: nodes whose machine stays."""
    was, now = _both(then, plan, kept)
    new = [name for name in now if name not in was]
    other = [name for name in now if name in was and was[name] != now[name]]
    return (*_lines(now, new, "made"), *_lines(now, other, "changed"))


def deleted(then: Plan, plan: Plan, kept: Iterable[str]) -> tuple[str, ...]:
    """What goes, a line a group."""
    was, now = _both(then, plan, kept)
    return tuple(_lines(was, [name for name in was if name not in now], "deleted"))


def _both(then: Plan, plan: Plan, kept: Iterable[str]) -> tuple[Found, Found]:
    names = set(kept)
    return cloud_resources.of_plan(then, names), cloud_resources.of_plan(plan, names)


def _lines(found: Found, names: Iterable[str], verb: str) -> Iterator[str]:
    groups: dict[Group, list[str]] = {}
    for name in names:
        groups.setdefault(found[name][0], []).append(name)
    for group, listed in groups.items():
        rest = f" and {len(listed) - _SHOWN} more" if len(listed) > _SHOWN else ""
        noun = "resource is" if len(listed) == 1 else "resources are"
        yield f"{group}: {len(listed)} {noun} {verb} ({', '.join(listed[:_SHOWN])}{rest})"
