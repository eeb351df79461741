"""Fixtures of the plan tests: a folder that stands for the checkout, and stacks that have settled."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.plan.settled import Stacks


@pytest.fixture(scope="session")
def stacks(tmp_path_factory: pytest.TempPathFactory) -> Stacks:
    folder: Path = tmp_path_factory.mktemp("checkout")
    return Stacks(folder)


@pytest.fixture(scope="session", autouse=True)
def _seldom_collected() -> Iterator[None]:
    """The SDKs of the clouds are a million objects that never go, and an update makes hundred thousands that
    go by themselves: looking for cycles among them as often as usual is a sixth of the time."""
    before = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    yield
    gc.set_threshold(*before)
    gc.unfreeze()
