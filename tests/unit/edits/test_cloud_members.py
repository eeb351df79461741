"""etcd neither comes to a machine that is in a cloud nor leaves it: its disk and its firewall groups are there from the first boot on."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from stacks.edits import memory
from stacks.edits.transition import TransitionError, check, remembered
from tests.unit.configs import aws, gcp, hcloud, lab, planned

Config = dict[str, object]
APART: Config = {"roles": ["etcd"], "count": 3, "addressOffset": 200}
ALONE: Config = {"pools.master.roles": ["master"]}


def refused(make: Callable[[Config], Config], was: Config, now: Config) -> list[str]:
    zones = {"zones": make({})["pools"]["master"]["zones"]} if make is not lab else {}  # type: ignore[index]
    before, after = (planned(make({"pools.etcd": APART | zones, **one})) for one in (was, now))
    try:
        check(remembered(json.loads(json.dumps(memory.of(before)))), after)
    except TransitionError as error:
        return [path for path, text in error.problems if "in a cloud" in text]
    return []


@pytest.mark.parametrize("make", [aws, gcp, hcloud])
def test_a_role_that_has_a_disk_is_one_for_life(make: Callable[[Config], Config]) -> None:
    assert refused(make, {}, ALONE) == ["pools.master.roles"]
    assert refused(make, ALONE, {}) == ["pools.master.roles"]
    # A machine that is made again under the name is of the same roles, too.
    assert refused(make, {}, ALONE | {"nodes/master-1": {"generation": 2}}) == [
        "pools.master.roles"
    ]


def test_elsewhere_a_disk_is_of_nobody() -> None:
    assert refused(lab, {}, ALONE) == refused(lab, ALONE, {}) == []
