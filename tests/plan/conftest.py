"""Fixtures of the plan tests: a folder that stands for the checkout, and stacks that have settled."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.plan.settled import Stacks


@pytest.fixture(scope="session")
def stacks(tmp_path_factory: pytest.TempPathFactory) -> Stacks:
    folder: Path = tmp_path_factory.mktemp("checkout")
    return Stacks(folder)
