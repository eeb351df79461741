"""What all tests share: tests marked `lab` are skipped, with the reason, where machines cannot be made; long files come first."""

from __future__ import annotations

import functools
import os

import pytest
from hypothesis import settings

from tests.e2e.harness import lab

# Draws are the same in every run, so that what passes in one place passes in another; `make fuzz` and `make e2e` draw
# new ones. Seconds say nothing: the computer may be busy.
settings.register_profile(
    "kube-ha", deadline=None, database=None, derandomize="KUBE_HA_FUZZ" not in os.environ
)
settings.load_profile("kube-ha")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    # Before fixtures: those of a story make a whole cluster.
    if item.get_closest_marker("lab") and _obstacle():
        pytest.skip(f"no lab machines on this computer: {_obstacle()}")


# Files whose tests take minutes, the longest first: a tier is as long as what begins last.
_LONG = (
    *("test_restore.py", "test_etcd_identity.py", "test_etcd_power_cuts.py", "test_phases.py"),
    *("test_old_members.py", "test_snapshot.py"),
    *("test_api_name.py", "test_day_2.py", "test_clouds.py"),
    *(
        "test_aws_calls.py",
        "test_killed.py",
        "test_edits.py",
        "test_object_store.py",
        "test_failures.py",
    ),
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    order = {name: place for place, name in enumerate(_LONG)}
    items.sort(key=lambda item: order.get(item.path.name, len(order)))


@functools.cache
def _obstacle() -> str:
    """Why there can be no lab machines here; empty if they can be."""
    try:
        lab.engine("image", "inspect", "localhost/kube-ha-lab:current")
    except lab.LabError as error:
        return str(error).splitlines()[-1]
    return ""
