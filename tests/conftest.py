"""What all tests share: tests marked `lab` are skipped, with the reason, where machines cannot be made."""

from __future__ import annotations

import functools

import pytest

from tests.e2e import lab


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    # Before fixtures: those of a story make a whole cluster.
    if item.get_closest_marker("lab") and _obstacle():
        pytest.skip(f"no lab machines on this computer: {_obstacle()}")


@functools.cache
def _obstacle() -> str:
    """Why there can be no lab machines here; empty if they can be."""
    try:
        lab.engine("image", "inspect", "localhost/kube-ha-lab:current")
    except lab.LabError as error:
        return str(error).splitlines()[-1]
    return ""
