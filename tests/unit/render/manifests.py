"""Looks into manifests: one document of a kind, a path in it."""

from __future__ import annotations

from typing import TypeAlias

import yaml

from stacks.cluster.plan import Plan
from stacks.phases import system_addons

Yaml: TypeAlias = "dict[str, Yaml] | list[Yaml] | str | int | bool | None"


def flannel(plan: Plan) -> str:
    return system_addons.addons(plan)["flannel"]


def one(text: str, kind: str) -> dict[str, Yaml]:
    found: list[dict[str, Yaml]] = [
        each for each in yaml.safe_load_all(text) if each["kind"] == kind
    ]
    assert len(found) == 1, kind
    return found[0]


def at(value: Yaml, *path: str | int) -> Yaml:
    for key in path:
        if isinstance(key, int):
            assert isinstance(value, list), f"{key} of {value!r}"
            value = value[key]
        else:
            assert isinstance(value, dict), f"{key} of {value!r}"
            value = value[key]
    return value


def pod_of(text: str, kind: str = "DaemonSet") -> Yaml:
    return at(one(text, kind), "spec", "template", "spec")


def data(text: str, name: str) -> str:
    content = at(one(text, "ConfigMap"), "data", name)
    assert isinstance(content, str)
    return content
