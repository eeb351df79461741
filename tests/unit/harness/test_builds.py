"""Bundles that are made while stories run."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from tests.e2e.harness.versions import Bundle
from tests.e2e.harness.waiting import wait_for
from tests.runner import builds
from tests.runner.builds import Builds
from tests.runner.jobs import STORIES, Job

FIRST = Bundle(call="", also=("addon=a",), link=".local/bundle-first")
SECOND = Bundle(call="", also=("addon=b",), link=".local/bundle-second")


class Wanting(Job):
    """A story that needs what its name says."""

    @property
    def bundles(self) -> set[Bundle]:
        return {bundle for bundle in (FIRST, SECOND) if bundle.also[0] in self.name}


FREE, A, BOTH = (
    Wanting(name=name, path=Path(name)) for name in ("free", "addon=a", "addon=a addon=b")
)


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, str]:
    """Python that is run in place of a build, by its bundle."""
    found: dict[str, str] = {}
    monkeypatch.setattr(builds, "LOGS", tmp_path)
    monkeypatch.setattr(
        builds, "_command", lambda bundle: [sys.executable, "-c", found[bundle.also[0]]]
    )
    return found


def look_until(there: Builds, story: Job) -> None:
    for _ in range(200):
        there.look()
        if not there.lacks(story):
            return
        time.sleep(0.05)
    raise AssertionError(f"{story.name} still waits")


def test_each_is_made_once_one_after_another_and_a_story_waits_for_all_of_its_own(
    script: dict[str, str], tmp_path: Path
) -> None:
    order = tmp_path / "order"
    for also in ("addon=a", "addon=b"):
        script[also] = f"open({str(order)!r}, 'a').write({also!r} + ' ')"
    with Builds([FREE, A, BOTH]) as there:
        assert [there.lacks(story) for story in (FREE, A, BOTH)] == [False, True, True]
        look_until(there, A)
        assert there.lacks(BOTH)
        look_until(there, BOTH)
        assert not there.busy
    assert order.read_text() == "addon=a addon=b "


def test_one_that_fails_is_told_and_its_story_runs(
    script: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    script["addon=a"] = "import sys; print('no such module'); sys.exit(1)"
    with Builds([A]) as there:
        look_until(there, A)
    said = capsys.readouterr().out
    assert "no such module" in said
    assert ".local/bundle-first could not be made" in said


def test_the_end_of_the_run_ends_a_build_and_what_it_started(
    script: dict[str, str], tmp_path: Path
) -> None:
    began, left = tmp_path / "began", tmp_path / "left"
    compiler = f"import time; open({str(began)!r}, 'w'); time.sleep(2); open({str(left)!r}, 'w')"
    script["addon=a"] = (
        f"import subprocess, sys; subprocess.run([sys.executable, '-c', {compiler!r}])"
    )
    with Builds([A]) as there:
        there.look()
        wait_for("the compiler runs", lambda: "" if began.exists() else "not yet", limit_s=30)
    time.sleep(3)
    assert not left.exists()


def test_stories_of_the_checkout_want_bundles_that_can_be_told_apart() -> None:
    found = {
        bundle
        for file in STORIES.glob("test_*.py")
        for bundle in Job(name=file.stem, path=file).bundles
    }
    assert len({bundle.link for bundle in found}) == len(found) > 5
