"""The page of evidence and the figures of README.md say what the record says, and nothing else."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests import evidence, measures
from tests.e2e.harness.lab import ROOT
from tests.ledger import RECORD, Passed
from tests.measures import Measure, Note, Served, Took

GROWING = Served(
    during="while growing", client="API", requests=400, failed=1, failed_twice=0, gap_ms=1640
)
SHOWS = {
    "create_3_2": "three masters",
    "grow_one_to_three": "one becomes three",
    "new": "never ran",
}


def passed(*measured: Measure, at: str = "2026-01-02T10:00:00Z", code: str = "a") -> Passed:
    return Passed(
        content=f"{code}-own",
        commit="abc",
        at=at,
        seconds=61.4,
        machine="2 cores",
        load=3.2,
        measures=measured,
    )


@pytest.mark.parametrize("measure", [GROWING, Took(what="an update", seconds=61.4), Note(text="x")])
def test_a_measure_comes_back_from_the_record_as_it_was(measure: Measure) -> None:
    assert measures.of_entry(measures.entry(measure)) == measure


def test_a_row_says_how_many_requests_failed_and_the_longest_gap_of_all_clients() -> None:
    other = Served(
        during="while growing", client="etcd", requests=100, failed=2, failed_twice=1, gap_ms=900
    )
    text = evidence.page({"grow_one_to_three": passed(GROWING, other)}, SHOWS)
    assert "| `grow_one_to_three` | one becomes three | 61 s | 3 of 500 | 1 | 1.6 s | 3.2 |" in text


def test_a_story_on_older_code_than_the_newest_is_marked() -> None:
    young = passed(at="2026-02-02T10:00:00Z", code="b")
    rows = evidence.page({"create_3_2": young, "grow_one_to_three": passed()}, SHOWS).splitlines()
    marks = {row.split("`")[1]: "| older |" in row for row in rows if row.startswith("| `")}
    assert marks == {"create_3_2": False, "grow_one_to_three": True}


def test_a_story_without_a_pass_is_named() -> None:
    text = evidence.page({"create_3_2": passed()}, SHOWS)
    assert "- `new`: never ran" in text


def test_a_figure_needs_its_measure_and_its_clients() -> None:
    took = Took(what="up from 1 to 3 masters", seconds=67.9)
    row = "| Grow from 1 to 3 control plane nodes under load | 68 s | 1 of 400, 0 after a retry | 1.6 s |"
    assert row in evidence.figures({"grow_one_to_three": passed(took, GROWING)})
    assert "Grow" not in evidence.figures({"grow_one_to_three": passed(took)})
    assert "Grow" not in evidence.figures({"grow_one_to_three": passed(GROWING)})


def test_the_check_finds_what_the_record_does_not_say(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in (evidence.README, evidence.PAGE, RECORD):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    evidence.write(tmp_path)
    assert evidence.main(["--check"], tmp_path) == 0
    readme = tmp_path / evidence.README
    readme.write_text(readme.read_text() + "Ready within 98765 s.\n")
    assert evidence.main(["--check"], tmp_path) == 1
    assert "'98765 s'" in capsys.readouterr().out
    (tmp_path / evidence.PAGE).write_text("")
    assert evidence.main(["--check"], tmp_path) == 1
    assert "docs/evidence.md: not what" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("an update of 61 s", []),
        ("an update of 62 s", ["62 s"]),
        ("1 of 400 requests failed", []),
        ("1 of 400, none after a retry; 61 s.", []),
        ("0 of 1,400 requests failed", ["0 of 1,400"]),
        ("within 10 min", ["10 min"]),
        ("Kubernetes 1.36.3 on 3 masters, 127.0.0.1:3446", []),
        ("```\nin 99 s\n```\n", []),
    ],
)
def test_a_figure_that_the_page_has_not_is_found(text: str, found: list[str]) -> None:
    page = evidence.page({"grow_one_to_three": passed(GROWING)}, SHOWS)
    assert evidence.unproven(text, page) == found
