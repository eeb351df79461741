"""Mappings have no order: the engine hands them over sorted, a file or a program as somebody wrote them."""

from __future__ import annotations

import json

from stacks.edits import memory, transition
from stacks.explain import report
from stacks.phases.gate import plan_digest
from tests.unit.configs import lab, planned


def test_another_order_of_a_mapping_is_the_same_plan_and_nothing_to_do() -> None:
    gates = {"PodLevelResourceManagers": True, "InPlacePodVerticalScalingExclusiveCPUs": False}
    start = lab({"controlPlane.featureGates": gates, "pools.worker.labels": {"b": "1", "a": "2"}})
    turned = {key: _turned(start[key]) for key in reversed(start)}
    assert json.dumps(turned) != json.dumps(start)
    was, now = planned(start), planned(turned)
    assert plan_digest(was) == plan_digest(now)
    known = memory.read(json.loads(json.dumps(memory.of(was), sort_keys=True)))
    assert report.report(known, now, transition.check(known, now)).is_empty
    assert report.report(known, was, transition.check(known, was)).is_empty


def _turned(value: object) -> object:
    if isinstance(value, dict):
        return {key: _turned(value[key]) for key in reversed(value)}
    return value
