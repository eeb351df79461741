"""Looks into kubeadm.yaml: its documents by kind, a path in one, flags of a component."""

from __future__ import annotations

from typing import TypeAlias

import yaml

from stacks.cluster.plan import Plan
from stacks.render import kubeadm

Yaml: TypeAlias = "dict[str, Yaml] | list[Yaml] | str | int | bool | None"


def documents(text: str) -> dict[str, dict[str, Yaml]]:
    return {each["kind"]: each for each in yaml.safe_load_all(text)}


def init_of(plan: Plan, name: str = "master-1") -> dict[str, dict[str, Yaml]]:
    return documents(kubeadm.init(plan, plan.node(name)))


def at(value: Yaml, *path: str) -> Yaml:
    for key in path:
        assert isinstance(value, dict), f"{key} of {value!r}"
        value = value[key]
    return value


def arguments(value: Yaml) -> dict[str, str]:
    """kubeadm's [{name, value}] as a mapping; names are unique and sorted."""
    assert isinstance(value, list)
    pairs = [(str(at(each, "name")), at(each, "value")) for each in value]
    assert [name for name, _ in pairs] == sorted({name for name, _ in pairs})
    assert all(isinstance(text, str) for _, text in pairs)
    return {name: str(text) for name, text in pairs}


def server_flags(plan: Plan) -> list[tuple[str, str]]:
    """Flags of the API server as they are given; one may be there more than once."""
    found = at(init_of(plan)["ClusterConfiguration"], "apiServer", "extraArgs")
    assert isinstance(found, list)
    return [(str(at(each, "name")), str(at(each, "value"))) for each in found]


def volumes(plan: Plan) -> set[object]:
    found = at(init_of(plan)["ClusterConfiguration"], "apiServer", "extraVolumes")
    assert isinstance(found, list)
    return {at(each, "name") for each in found}
