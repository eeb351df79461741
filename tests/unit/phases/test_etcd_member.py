"""What the first member of a cluster is told when it founds it."""

from __future__ import annotations

from stacks.cluster import artifacts
from stacks.phases import etcd_member
from tests.unit.configs import adopted, planned

DAY_S = 24 * 3600


def founding(*, newborn: bool, leaving: dict[str, str] | None = None) -> dict[str, str]:
    plan = planned(adopted())
    values = etcd_member.whole(plan, plan.etcd[0], artifacts.files(plan, "amd64"))
    return etcd_member.founding(values, leaving=leaving or {}, now_s=10.5 * DAY_S, newborn=newborn)


def test_a_cluster_is_founded_once_and_for_two_days_at_most() -> None:
    told = founding(newborn=True)
    assert (told["BOOTSTRAP"], told["BOOTSTRAP_UNTIL"]) == ("1", str(12 * DAY_S))


def test_in_a_stack_that_lives_nobody_founds() -> None:
    told = founding(newborn=False)
    assert told["BOOTSTRAP"] == "0"
    assert "BOOTSTRAP_UNTIL" not in told
    assert told["UNTIL"] == str(12 * DAY_S)


def test_members_that_leave_are_named_for_they_know_the_cluster() -> None:
    members = founding(newborn=False, leaving={"old-2": "192.0.2.62", "old-1": "192.0.2.61"})
    assert members["MEMBERS"].endswith("master-3=192.0.2.13 old-1=192.0.2.61 old-2=192.0.2.62")


def test_founding_is_told_nothing_of_backups_which_change() -> None:
    assert not [name for name in founding(newborn=True) if name.startswith("BACKUP_")]
