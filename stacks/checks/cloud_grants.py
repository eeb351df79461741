"""Checks of what machines in a cloud may do there: policies at AWS, roles at Google."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from stacks.cluster import clouds
from stacks.config.problems import Problem


def problems(
    path: str, grants: Sequence[str], kind: Literal["policy", "role"]
) -> Iterator[Problem]:
    """Each is a resource of its own, under a name that is its last word."""
    name = clouds.policy_name if kind == "policy" else clouds.role_name
    first: dict[str, int] = {}
    for index, grant in enumerate(grants):
        earlier = first.setdefault(name(grant), index)
        if earlier != index:
            same = f"has the last word of {path}[{earlier}], by which its resource is named"
            text = "is there twice" if grant == grants[earlier] else same
            yield Problem(f"{path}[{index}]", f"{grant} {text}; leave one out")
