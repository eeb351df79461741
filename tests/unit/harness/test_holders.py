"""What the machines' own sight of an address says about who had it."""

from __future__ import annotations

from tests.e2e.harness.holders import Hold, _of_lines


def test_one_hold_after_another() -> None:
    text = "0 begun\n100 0\n200 1\n1200 1\n2200 0\n9000 1\n9500 1\n"
    assert _of_lines("a", text) == [
        Hold(node="a", start_ms=200, end_ms=1200),
        Hold(node="a", start_ms=9000, end_ms=9500),
    ]


def test_a_machine_that_was_dead_had_nothing_meanwhile() -> None:
    assert _of_lines("a", "0 begun\n200 1\n1200 1\n0 begun\n8000 1\n8") == [
        Hold(node="a", start_ms=200, end_ms=1200),
        Hold(node="a", start_ms=8000, end_ms=8000),
    ]


def test_a_machine_that_stood_still_for_a_moment_has_had_it_all_the_time() -> None:
    assert _of_lines("a", "0 begun\n200 1\n9000 1\n") == [Hold(node="a", start_ms=200, end_ms=9000)]
