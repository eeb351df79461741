"""The ledger of stories: what passed is known for the same content, and for no other."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.ledger import RECORD, Ledger, tree
from tests.measures import Took


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    root = tmp_path / "checkout"
    root.mkdir()
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    (root / ".gitignore").write_text("ignored\n")
    (root / "file").write_text("one\n")
    author = ["-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run(["git", "-C", str(root), "add", "-A"], check=True)
    subprocess.run(["git", "-C", str(root), *author, "commit", "-qm", "one"], check=True)
    return root


def ledger(root: Path) -> Ledger:
    return Ledger(root.parent / "cache/passed.json", root)


def test_what_passed_is_known_until_the_content_changes(checkout: Path) -> None:
    ledger(checkout).note("create", seconds=61.23)
    found = ledger(checkout).passed("create")
    assert found is not None
    assert found.seconds == 61.2
    assert ledger(checkout).passed("grow") is None
    (checkout / "file").write_text("two\n")
    assert ledger(checkout).passed("create") is None
    (checkout / "file").write_text("one\n")
    assert ledger(checkout).passed("create") is not None


def test_an_entry_tells_the_commit_and_whether_more_lay_there(checkout: Path) -> None:
    ledger(checkout).note("create", seconds=1)
    (checkout / "file").write_text("two\n")
    ledger(checkout).note("grow", seconds=1)
    entries = ledger(checkout).entries()
    assert entries["grow"].commit == entries["create"].commit + "+"


def test_stories_go_by_the_age_of_their_last_pass(checkout: Path) -> None:
    def at(time: str) -> dict[str, object]:
        return {"content": "", "commit": "", "at": time, "seconds": 1}

    file = checkout.parent / "cache/passed.json"
    file.parent.mkdir()
    old, young = at("2026-01-02T10:00:00Z"), at("2026-02-01T09:00:00Z")
    file.write_text(json.dumps({"young": young, "old": old, "also-old": old}))
    in_turn = ledger(checkout).by_age(["young", "old", "never", "also-old"])
    assert in_turn == ["never", "also-old", "old", "young"]


@pytest.mark.parametrize(
    "shared", ["file", "tests/e2e/harness/load.py", "tests/scripts/s3_server.py"]
)
def test_a_story_depends_on_its_own_file_and_on_what_all_share(checkout: Path, shared: str) -> None:
    own, other = (checkout / f"tests/e2e/test_{name}.py" for name in ("create", "grow"))
    own.parent.mkdir(parents=True)
    own.write_text("one\n")
    other.write_text("one\n")
    for name in ("create", "grow"):
        ledger(checkout).note(name, seconds=1)
    other.write_text("fixed\n")
    assert ledger(checkout).passed("create") is not None
    assert ledger(checkout).passed("grow") is None
    own.write_text("from tests.e2e.test_grow import x\n")
    ledger(checkout).note("create", seconds=1)
    other.write_text("fixed again\n")
    assert ledger(checkout).passed("create") is None
    ledger(checkout).note("create", seconds=1)
    (checkout / shared).parent.mkdir(parents=True, exist_ok=True)
    (checkout / shared).write_text("new\n")
    assert ledger(checkout).passed("create") is None


@pytest.mark.parametrize(
    "path",
    ["README.md", "docs/page.md", "tests/unit/test_x.py", "tests/scripts/conftest.py", RECORD],
)
def test_what_no_story_can_feel_is_no_content(checkout: Path, path: str) -> None:
    before = tree(checkout)
    (checkout / path).parent.mkdir(parents=True, exist_ok=True)
    (checkout / path).write_text("new\n")
    assert tree(checkout) == before


def test_a_story_that_fails_later_has_not_passed(checkout: Path) -> None:
    ledger(checkout).note("create", seconds=1)
    ledger(checkout).note("grow", seconds=1)
    ledger(checkout).forget("create")
    assert ledger(checkout).passed("create") is None
    assert ledger(checkout).passed("grow") is not None


def test_content_is_what_is_not_ignored_committed_or_not(checkout: Path) -> None:
    before = tree(checkout)
    (checkout / "ignored").write_text("log\n")
    assert tree(checkout) == before
    (checkout / "new").write_text("")
    assert tree(checkout) not in (before, None)


def test_looking_changes_nothing_of_the_checkout(checkout: Path) -> None:
    def files() -> set[Path]:
        return set(checkout.rglob("*"))

    before = files()
    assert tree(checkout)
    assert files() == before


def test_outside_of_a_checkout_nothing_is_known(tmp_path: Path) -> None:
    assert tree(tmp_path) is None
    ledger = Ledger(tmp_path / "passed.json", tmp_path)
    ledger.note("create", seconds=1)
    assert ledger.passed("create") is None


def test_a_broken_file_knows_nothing_and_is_written_anew(checkout: Path) -> None:
    (checkout.parent / "cache").mkdir()
    (checkout.parent / "cache/passed.json").write_text('{"create": {"colour"')
    assert ledger(checkout).passed("create") is None
    ledger(checkout).note("create", seconds=1)
    assert ledger(checkout).passed("create") is not None


def test_measures_of_a_pass_are_kept_beside_it(checkout: Path) -> None:
    measure = Took(what="an update", seconds=61.2)
    ledger(checkout).note("create", seconds=1, measured=[measure])
    ledger(checkout).note("grow", seconds=1)
    entries = ledger(checkout).entries()
    assert (entries["create"].measures, entries["grow"].measures) == ((measure,), ())
    assert entries["create"].machine
