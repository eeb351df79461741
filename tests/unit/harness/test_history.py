"""What is made of the lines of a client that counts."""

from __future__ import annotations

from dataclasses import replace

from tests.e2e.harness.history import Seen, attempts, seen

GOOD = """
1 read 1000 1010 200 - 0 a:1
2 write 1010 1020 200 0 1 a:1
3 read 1220 1230 200 - 1 a:1
4 write 1230 1240 200 1 2 a:1
5 read 1440 1450 200 - 2 a:1
"""
NOTHING_WRONG = Seen(
    requests=5, failed=0, failed_twice=0, lost=0, stale=0, reads_gap_ms=220, writes_gap_ms=220
)


def judged(lines: str) -> Seen:
    return seen(attempts(lines.splitlines()))


def test_a_client_that_felt_nothing() -> None:
    assert judged(GOOD) == NOTHING_WRONG


def test_a_line_that_was_cut_off_and_words_of_programs_are_left_out() -> None:
    assert judged(GOOD + "bash: jq: no such file\n6 write 15") == NOTHING_WRONG


def test_an_attempt_without_an_answer_that_a_retry_mends() -> None:
    lines = GOOD + "6 write 1450 3450 000 2 3 a:1\n6 write 3450 3460 200 2 3 b:1\n"
    found = judged(lines)
    assert (found.requests, found.failed, found.failed_twice) == (6, 1, 0)
    assert found.writes_gap_ms == 2220


def test_an_attempt_that_a_retry_does_not_mend() -> None:
    lines = GOOD + "6 write 1450 3450 000 2 3 a:1\n6 write 3450 3460 503 2 3 b:1\n"
    assert (judged(lines).failed, judged(lines).failed_twice) == (1, 1)


def test_a_conflict_is_an_answer_and_no_acknowledgement() -> None:
    lines = GOOD + "6 write 1450 1460 409 2 3 a:1\n7 read 1660 1670 200 - 2 a:1\n"
    assert judged(lines) == replace(NOTHING_WRONG, requests=7, writes_gap_ms=220)


def test_a_read_that_goes_back_is_stale() -> None:
    lines = GOOD + "6 read 1660 1670 200 - 1 b:1\n7 read 1880 1890 200 - 2 a:1\n"
    assert (judged(lines).stale, judged(lines).lost) == (1, 0)


def test_an_acknowledged_write_that_is_not_there_in_the_end_is_lost() -> None:
    lines = GOOD + "6 read 1660 1670 200 - 1 b:1\n"
    assert (judged(lines).stale, judged(lines).lost) == (1, 1)


def test_an_acknowledged_write_that_another_one_did_not_see_is_lost() -> None:
    lines = (
        GOOD
        + "6 read 1660 1670 200 - 0 b:1\n7 write 1670 1680 200 0 3 b:1\n8 read 1900 1910 200 - 3 b:1\n"
    )
    assert judged(lines).lost == 2


def test_a_write_whose_answer_got_lost_may_be_there_or_not() -> None:
    unknown = GOOD + "6 write 1450 1460 000 2 3 a:1\n6 write 1460 1470 409 2 3 a:1\n"
    for number in (2, 3):
        found = judged(unknown + f"7 read 1660 1670 200 - {number} a:1\n")
        assert (found.failed, found.failed_twice, found.lost, found.stale) == (1, 0, 0, 0)


def test_waiting_for_the_last_answer_is_a_gap_too() -> None:
    assert judged(GOOD + "6 read 1660 9660 000 - - a:1\n").reads_gap_ms == 9660 - 1450
