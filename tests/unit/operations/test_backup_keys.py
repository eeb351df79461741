"""The key of snapshots is the present seed's, and by a word that of an earlier one."""

from __future__ import annotations

import pytest

from operations.engine.engine import StackError
from operations.engine.stack import Stack
from tests.unit.configs import lab, planned

STACK = Stack(
    plan=planned(lab()),
    targets={},
    cluster_id="0123456789ab",
    backup_key="new",
    backup_keys={"1": "old", "2": "new"},
)


def test_a_seed_is_chosen_by_its_generation() -> None:
    assert [STACK.of_seed(number).backup_key for number in (None, 1, 2)] == ["new", "old", "new"]


def test_one_that_never_was_is_refused_with_those_that_were() -> None:
    with pytest.raises(StackError, match="no key of seed 3; it has: 1, 2"):
        STACK.of_seed(3)
