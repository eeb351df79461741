"""What drift says of backups of etcd."""

from __future__ import annotations

import pytest

from tests.unit.configs import lab, planned, with_store
from tests.unit.operations.probed import Edits, backed_up, hours_ago, line, look

PLAN = planned(lab())


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


NAME = "dev-20270601T093000Z-4711-master-3-schedule.db.enc"


def test_what_did_not_get_to_the_object_store_is_told_until_a_later_one_did() -> None:
    plan = planned(lab(with_store()))
    unsent = line("backup-unsent", hours_ago(1), NAME, "403 AccessDenied: no")
    sent = line("backup-sent", hours_ago(2), NAME)
    seen = look(plan, {"master-1": {"backup-unsent": unsent}, "master-3": {"backup-sent": sent}})
    (found,) = seen.report.nodes["master-1"]
    assert found.text == f"{NAME} did not get to the object store: 403 AccessDenied: no"
    later = line("backup-sent", hours_ago(0.5), NAME)
    seen = look(plan, {"master-1": {"backup-unsent": unsent}, "master-3": {"backup-sent": later}})
    assert seen.report.count == 0


def test_a_store_that_gets_nothing_any_more_is_the_clusters_trouble() -> None:
    plan = planned(lab(with_store()))
    old = look(plan, {"master-3": {"backup-sent": line("backup-sent", hours_ago(14), NAME)}})
    assert [found.text for found in old.report.cluster] == [
        "the last one in the object store is 14 h old, one every 6 h is planned"
    ]
    never = look(plan).report
    assert [found.text for found in never.cluster] == [
        "the object store was never sent a backup, one every 6 h is planned"
    ]
    assert look(PLAN).report.count == 0
