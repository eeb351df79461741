"""The data of a cloud's resources and what is registered of it are the same set, and each is told by its line."""

from __future__ import annotations

import pytest

from stacks.cluster import cloud_resources
from tests.plan import told_places
from tests.plan.clouds import is_cloud
from tests.plan.registration import Change
from tests.plan.settled import Stacks
from tests.unit.cloud_shapes import SHAPES
from tests.unit.configs import planned


@pytest.mark.parametrize("shape", SHAPES)
def test_what_is_told_of_a_cloud_is_what_is_registered(stacks: Stacks, shape: str) -> None:
    plan = planned(SHAPES[shape])
    _, run = stacks.settled(SHAPES[shape])
    done = {one.name: one for one in run.custom if is_cloud(one.type)}
    found = cloud_resources.of_plan(plan)
    told = {
        **cloud_resources.told(plan, found.machines),
        **({found.record.name: found.record} if found.record else {}),
    }
    assert {f"prod-{name}" for name in told} == {*done}
    for name, one in told.items():
        made = done[f"prod-{name}"]
        assert made.type.split(":")[-1].lower() in (
            one.type.split(".")[-1].lower(),
            one.type.split(".")[0],
        )
        of_plain = {
            key: value for key, value in one.properties.items() if isinstance(value, str | int)
        }
        assert {key: made.value(camel(key)) for key in of_plain} == of_plain
        if one.kind != "API name":
            place = told_places._of_cloud(Change("+", made.name, after=made))
            assert place == ("cloud", f"{one.kind} made"), name


def camel(key: str) -> str:
    first, *rest = key.split("_")
    return first + "".join(map(str.capitalize, rest))
