"""The ledger of stories: what passed is known for the same content, and for no other."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.ledger import Ledger, tree


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    root = tmp_path / "checkout"
    root.mkdir()
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    (root / ".gitignore").write_text("ignored\n")
    (root / "file").write_text("one\n")
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
