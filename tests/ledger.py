"""Which stories have passed, on which content and when: a file of the checkout that is committed with the change it speaks of.

By it a full run that was cut off continues where it was, also in a fresh clone; and `make test` knows which stories nothing
has run for the longest time.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from pathlib import Path

from tests import measures
from tests.measures import Measure

RECORD = "tests/e2e/passed.json"
# What no story can feel: pages, and tests that are not stories.
_APART = ("docs", "*.md", ".github", ".ci", "tests")
# What all stories share of the tests; each has its own file beside it.
_SHARED = ("tests/e2e", "tests/scripts/s3_server.py", "tests/scripts/versitygw")
_STORY = "tests/e2e/test_{}.py"


@dataclass(frozen=True, slots=True, kw_only=True)
class Passed:
    """One story that passed: on what, when it ended (ISO 8601, UTC), how long it took, what it measured."""

    content: str  # of `Ledger.content`
    commit: str  # short; with a + where something was not committed
    at: str
    seconds: float
    machine: str = ""  # cores, memory and kernel
    load: float | None = (
        None  # of the last 5 minutes, as the kernel counts: processes that run or wait
    )
    measures: tuple[Measure, ...] = ()

    @property
    def code(self) -> str:
        """Id of all that the story shared with others: one id, one state of the product."""
        return self.content.partition("-")[0]


class Ledger:
    """A file of stories that passed. Content is all that a story may depend on, committed or not.

    Outside of a git checkout there is no content to compare: then nothing is known, and nothing noted.
    """

    def __init__(self, file: Path, root: Path) -> None:
        self._file, self._root = file, root
        self._tree = tree(root)

    def content(self, story: str) -> str | None:
        """The git tree of what all stories depend on, and the sum of the story's own files."""
        if self._tree is None:
            return None
        total = hashlib.sha256(b"".join(self._own(story))).hexdigest()
        return f"{self._tree[:20]}-{total[:20]}"

    def _own(self, story: str) -> Iterator[bytes]:
        """Its file, and those of other stories that it takes something from."""
        file = self._root / _STORY.format(story)
        text = file.read_bytes() if file.is_file() else b""
        yield text
        for other in re.findall(rb"^from tests\.e2e\.test_(\w+) import", text, re.MULTILINE):
            yield from self._own(other.decode())

    def passed(self, story: str) -> Passed | None:
        """The entry of a story that passed on this very content."""
        found = self.entries().get(story)
        return found if found and found.content == self.content(story) else None

    def note(self, story: str, *, seconds: float, measured: Sequence[Measure] = ()) -> None:
        """The story has just passed; stored at once, for the run may end at any time."""
        content = self.content(story)
        if content is None:
            return
        entry = Passed(
            content=content,
            commit=_commit(self._root),
            at=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            seconds=round(seconds, 1),
            machine=_machine(),
            load=round(os.getloadavg()[1], 1),
            measures=tuple(measured),
        )
        self._write({**self.entries(), story: entry})

    def forget(self, story: str) -> None:
        """The story has just failed, whatever it did before."""
        self._write({name: entry for name, entry in self.entries().items() if name != story})

    def by_age(self, stories: Iterable[str]) -> list[str]:
        """Those that never passed first, then the longest ago; by name where that is equal."""
        known = self.entries()
        return sorted(stories, key=lambda name: (known[name].at if name in known else "", name))

    def entries(self) -> dict[str, Passed]:
        """By the name of the story; empty where there is no file, or one of another version."""
        try:
            found = json.loads(self._file.read_text())
            return {name: _passed(entry) for name, entry in found.items()}
        except (OSError, ValueError, TypeError, KeyError):
            return {}

    def _write(self, entries: Mapping[str, Passed]) -> None:
        self._file.parent.mkdir(parents=True, exist_ok=True)
        new = self._file.with_suffix(".new")
        found = {name: _json(entry) for name, entry in sorted(entries.items())}
        new.write_text(json.dumps(found, indent=1) + "\n")
        new.replace(self._file)


def _passed(found: Mapping[str, object]) -> Passed:
    listed = found.get("measures", [])
    assert isinstance(listed, list)
    values = {**found, "measures": tuple(map(measures.of_entry, listed))}
    return Passed(**values)  # type: ignore[arg-type]


def _json(entry: Passed) -> dict[str, object]:
    values = {field.name: getattr(entry, field.name) for field in fields(entry)}
    return {**values, "measures": [measures.entry(one) for one in entry.measures]}


def _machine() -> str:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    kernel = ".".join(platform.release().split(".")[:2])
    return f"{os.cpu_count()} cores, {memory:.0f} GiB, {platform.system()} {kernel}"


def tree(root: Path) -> str | None:
    """Id of the git tree of what all stories depend on, as it is there now; None where there is no git or no checkout."""
    with tempfile.TemporaryDirectory() as name:
        # An index and an object store of its own: looking must not change the checkout.
        try:
            objects = _git(root, "rev-parse", "--path-format=absolute", "--git-path", "objects")
            own = {
                "GIT_INDEX_FILE": f"{name}/index",
                "GIT_OBJECT_DIRECTORY": name,
                "GIT_ALTERNATE_OBJECT_DIRECTORIES": objects,
            }
            apart = [f":(top,exclude){path}" for path in _APART]
            _git(root, "add", "--all", "--", ".", *apart, **own)
            shared = [path for path in _SHARED if (root / path).exists()]
            apart = [f":(top,exclude){path}" for path in (_STORY.format("*"), RECORD)]
            if shared:
                _git(root, "add", "--all", "--", *shared, *apart, **own)
            return _git(root, "write-tree", **own)
        except (OSError, subprocess.CalledProcessError):
            return None


def _commit(root: Path) -> str:
    try:
        commit = _git(root, "rev-parse", "--short=10", "HEAD")
        changed = _git(root, "status", "--porcelain", "--", ".", f":(top,exclude){RECORD}")
    except subprocess.CalledProcessError:
        return "none"  # nothing was ever committed
    return f"{commit}+" if changed else commit


def _git(root: Path, *words: str, **environment: str) -> str:
    done = subprocess.run(
        ["git", *words],
        cwd=root,
        env=os.environ | environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()
