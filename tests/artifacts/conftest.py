"""Fixtures of the artefacts' tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.artifacts import upstream as servers
from tests.artifacts.upstream import Upstream


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    """A server with upstream's layout, empty at first."""
    with servers.serve() as server:
        yield server
