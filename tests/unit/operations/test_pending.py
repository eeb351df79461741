"""Which edits of a config were not applied yet."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from operations.observe.pending import pending
from stacks.edits import memory
from tests.unit.configs import lab, planned


def remembered(edits: Mapping[str, object]) -> dict[str, object]:
    """What a stack remembers, as it comes back from its outputs."""
    known: dict[str, object] = json.loads(json.dumps(memory.of(planned(lab(edits)))))
    return known


def test_what_was_applied_leaves_nothing() -> None:
    assert pending(remembered({}), planned(lab())) == []


@pytest.mark.parametrize(
    ("edits", "told"),
    [
        ({"pools.worker.count": 3}, ["pools.worker.count: 3, applied was 2"]),
        (
            {"controlPlane.audit": {"enabled": False}, "kubelet": {"maxPods": 50}},
            [
                "controlPlane.audit.detail: unset, applied was bodies",
                "controlPlane.audit.enabled: false, applied was true",
                "kubelet.maxPods: 50, applied was 110",
            ],
        ),
        (
            {"pools.spare": {"roles": ["worker"], "count": 1, "addressOffset": 200}},
            [
                "pools.spare.addressOffset: 200, applied was unset",
                "pools.spare.count: 1, applied was unset",
                "pools.spare.roles: ['worker'], applied was unset",
            ],
        ),
        ({"allow": ["mass-removal/worker"]}, []),
    ],
)
def test_every_edit_is_told_by_its_path(edits: dict[str, object], told: list[str]) -> None:
    assert pending(remembered({}), planned(lab(edits))) == told


def test_another_version_of_the_program_is_told_too() -> None:
    known = remembered({})
    scripts, versions = known["scripts"], known["versions"]
    assert isinstance(scripts, dict)
    assert isinstance(versions, dict)
    scripts["node"] = "ffff"
    versions["etcd"] = "3.5.0"
    now = planned(lab())
    assert pending(known, now) == [
        "script node: another version",
        f"version of etcd: {now.versions.etcd}, applied was 3.5.0",
    ]
    assert pending({"format": 1}, now) == [
        "the last update was that of another version of this program"
    ]


def test_what_this_program_makes_otherwise_of_the_same_config_is_told() -> None:
    known = remembered({})
    rendered = known["rendered"]
    assert isinstance(rendered, dict)
    rendered["worker"]["node HAPROXY_CFG"] = "ffff"
    told = "worker.node HAPROXY_CFG: made otherwise by this version of the program"
    assert pending(known, planned(lab())) == [told]
    # What an edit makes otherwise goes without saying.
    assert pending(known, planned(lab({"kubelet": {"maxPods": 50}}))) == [
        "kubelet.maxPods: 50, applied was 110"
    ]


def test_without_a_success_all_is_to_be_applied() -> None:
    assert pending(None, planned(lab())) == ["the stack remembers no up that came to its end"]
