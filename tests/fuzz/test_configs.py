"""Any config is refused with paths that lead somewhere, or planned as promised."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import get_args

import pytest
from hypothesis import given
from pydantic import BaseModel

from stacks.config.clouds import CloudSpec
from stacks.config.problems import SpecError
from stacks.config.spec import Spec
from stacks.load import load, planned
from tests.fuzz import clusters, invariants
from tests.fuzz.clusters import Config, configs
from tests.fuzz.counted import counted

_TRIES = 10_000


@pytest.mark.usefixtures("quick_yaml")
def test_any_config_is_refused_with_its_problems_or_planned(examples: int) -> None:
    seen: Counter[str] = Counter()

    @counted(examples)
    @given(configs())
    def each(raw: Config) -> None:
        try:
            made = planned(load(raw, read_keys=False))
        except SpecError as error:
            invariants.of_problems(error.problems, raw)
            seen["refused"] += 1
        else:
            invariants.of_plan(raw, made)
            seen["planned"] += 1
            seen["neighbours"] += invariants.of_neighbours(raw, made)

    each()
    # Or the run has proven little.
    assert seen["planned"] > examples / 3
    assert seen["refused"] > examples / 10
    assert seen["neighbours"] > examples / 5


# Hosts stand in its place once a stack file is read: tests/unit/config/test_hosts_file.py.
_OPENED = "PoolSpec.hosts_file"


@pytest.mark.usefixtures("quick_yaml")
def test_every_field_of_the_model_is_drawn_and_accepted() -> None:
    """A new field that is never drawn, or refused with whatever is drawn for it, is not proven."""
    missing = set(_fields(Spec)) - {_OPENED}
    for made in islice(clusters.sample(seed=1), _TRIES):
        missing -= {*_said(made.spec)}
        if not missing:
            return
    pytest.fail(f"in none of {_TRIES} configs: {', '.join(sorted(missing))}")


def _fields(model: type[BaseModel]) -> Iterator[str]:
    """`ClusterSpec.pod_cidr` and so on: every field of the model."""
    for name, info in model.model_fields.items():
        if not issubclass(model, CloudSpec) or name not in model.LACKS:
            yield f"{model.__name__}.{name}"
        for section in _sections(info.annotation):
            yield from _fields(section)


def _sections(kind: object) -> Iterator[type[BaseModel]]:
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        yield kind
    for part in get_args(kind):
        yield from _sections(part)


def _said(value: object) -> Iterator[str]:
    """The fields that a config has set."""
    if isinstance(value, BaseModel):
        for name in value.model_fields_set:
            yield f"{type(value).__name__}.{name}"
            yield from _said(getattr(value, name))
    elif isinstance(value, Mapping | tuple):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from _said(item)
