"""What drift says of backups of etcd."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.unit.configs import lab, planned
from tests.unit.probed import NOW, Edits, backed_up, line, look

PLAN = planned(lab())


def hours_ago(hours: float) -> int:
    return int((NOW - timedelta(hours=hours)).timestamp())


def test_backups_that_come_as_planned_are_no_difference() -> None:
    assert look(PLAN).report.count == 0
    assert look(PLAN, {"master-3": {"backup": backed_up(12.9)}}).report.count == 0
    running = {"backup-begun": line("backup-begun", hours_ago(0.2))}
    assert look(PLAN, {"master-1": running}).report.count == 0


@pytest.mark.parametrize(
    ("node", "edits", "text"),
    [
        ("master-1", {"backup-timer": line("backup-timer", "inactive")}, "the timer of etcd backups is inactive"),
        ("master-2", {"backup-begun": line("backup-begun", hours_ago(2))}, "its last backup of etcd was never finished"),
    ],
)  # fmt: skip
def test_what_is_wrong_on_one_machine(node: str, edits: dict[str, str], text: str) -> None:
    report = look(PLAN, {node: edits}).report
    assert [found.text for found in report.nodes[node]] == [text]
    assert report.count == 1


def test_backups_that_stopped_coming_are_the_clusters_trouble() -> None:
    (found,) = look(PLAN, {"master-3": {"backup": backed_up(14)}}).report.cluster
    assert found.text == "the last backup of etcd is 14 h old, one every 6 h is planned"


def test_a_young_cluster_need_not_have_one() -> None:
    etcd = {"unit\tetcd": line("unit", "etcd", "active", "enabled", hours_ago(3), 0)}
    young: dict[str, Edits | str] = {name: etcd for name in ("master-1", "master-2")}
    young["master-3"] = {**etcd, "backup": None}
    assert look(PLAN, young).report.count == 0
    old = look(PLAN, {"master-3": {"backup": None}}).report
    assert [found.text for found in old.cluster] == [
        "etcd was never backed up, one every 6 h is planned"
    ]


def test_without_a_timer_nothing_is_expected() -> None:
    plan = planned(lab({"etcd.backup": {"everyHours": 0}}))
    off = {"backup-timer": line("backup-timer", "inactive"), "backup": None}
    assert look(plan, {"master-3": off}).report.count == 0
