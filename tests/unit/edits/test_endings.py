"""When certificates end: remembered by the last success, said in every preview."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from operations.observe import expiry
from operations.observe.facts import Certificate
from stacks.edits import endings, memory, transition
from stacks.explain import comment, report, terminal
from tests.unit.configs import lab, planned

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
LEAFS = {"master-1-apiserver": "2027-11-01T00:00:00Z", "admin": "2027-10-31T23:30:00-01:00"}
CAS = {"etcd": "2036-11-20T10:00:00.123456Z", "kubernetes": "2036-11-20T10:00:00.5Z"}
KNOWN = [endings.first("leaf", LEAFS), endings.first("ca", CAS)]


def said(known: object, edits: dict[str, object] | None = None) -> report.Report:
    before = memory.read({**memory.of(planned(lab())), memory.ENDINGS: known})
    wanted = planned(lab(edits))
    return report.report(before, wanted, transition.check(before, wanted))


def test_the_first_of_each_kind_is_remembered_in_utc() -> None:
    assert KNOWN == [
        {"kind": "leaf", "name": "master-1-apiserver", "ends": "2027-11-01T00:00:00Z"},
        {"kind": "ca", "name": "etcd", "ends": "2036-11-20T10:00:00Z"},
    ]


def test_every_preview_tells_the_days_that_are_left() -> None:
    text = terminal.as_text(said(KNOWN), now=NOW)
    assert (
        "certificates, as of the last success: the first to end are leaf master-1-apiserver on "
        "2027-11-01 (343 days left) and CA etcd on 2036-11-20 (3650 days left)"
    ) in " ".join(text.split())
    assert "nothing to do" in text


def test_what_is_approved_holds_for_more_than_a_day() -> None:
    """A report is approved by its words: these hold dates, and no count of days."""
    text = comment.as_markdown(said(KNOWN))
    assert "2027-11-01" in text
    assert "days" not in text
    assert report.warnings(said(KNOWN), NOW) == []


@pytest.mark.parametrize("known", [None, [], "x", [{}], [{"kind": "leaf", "ends": "never"}], [7]])
def test_a_memory_without_dates_says_nothing(known: object) -> None:
    found = said(known)
    assert "certificates, as of" not in terminal.as_text(found, now=NOW)
    assert report.warnings(found, NOW) == []


@pytest.mark.parametrize(
    ("days", "hours", "words"),
    [
        (59, 24, "ends on 2027-01-20; an update from 2027-01-19 on renews it"),
        (59, 2160, "ends on 2027-01-20; this update renews it"),
        (-1, 2160, "has ended on 2026-11-21; this update renews it"),
    ],
)
def test_a_leaf_that_ends_soon_is_warned_of(days: int, hours: int, words: str) -> None:
    ends = f"{NOW + timedelta(days=days):%Y-%m-%dT%H:%M:%SZ}"
    found = said([endings.first("leaf", {"a": ends})], {"pki.leafRenewalHours": hours})
    ((path, text),) = report.warnings(found, NOW)
    assert path == "pki.leafRenewalHours"
    assert words in text


def test_a_ca_that_ends_soon_is_warned_of_with_the_way_out() -> None:
    found = said([endings.first("ca", {"etcd": "2027-01-01T00:00:00Z"})])
    assert report.warnings(found, NOW) == [
        (
            "pki.rotation",
            "CA etcd ends on 2027-01-01; replace it in three steps (docs/operate/rotate.md)",
        )
    ]


@pytest.mark.parametrize(
    ("left", "life", "told"), [(59, 365, True), (61, 365, False), (29, 90, True), (31, 90, False)]
)
def test_drift_tells_of_a_certificate_that_ends_soon_whatever_the_hours_of_renewal(
    left: int, life: int, *, told: bool
) -> None:
    ends = NOW + timedelta(days=left)
    known = Certificate(ends=ends, begins=ends - timedelta(days=life))
    found = [*expiry.administrator(known, renewal=timedelta(hours=1), now=NOW)]
    assert bool(found) == told
