"""Which stories have passed on which content, so that a full run that was cut off goes on where it was."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Passed:
    """One story that passed: on what, when it ended (seconds of the epoch), how long it took."""

    content: str
    at_s: float
    seconds: float


class Ledger:
    """A file of stories that passed. Content is the git tree of all that is not ignored, committed or not.

    Outside of a git checkout there is no content to compare: then nothing is known, and nothing noted.
    """

    def __init__(self, file: Path, root: Path) -> None:
        self._file = file
        self.content = tree(root)

    def passed(self, story: str) -> Passed | None:
        """The entry of a story that passed on this very content."""
        found = self._read().get(story)
        return found if found and found.content == self.content else None

    def note(self, story: str, *, seconds: float) -> None:
        """The story has just passed; stored at once, for the run may end at any time."""
        if self.content is None:
            return
        entry = Passed(content=self.content, at_s=time.time(), seconds=round(seconds, 1))
        self._write({**self._read(), story: entry})

    def forget(self, story: str) -> None:
        """The story has just failed, whatever it did before."""
        self._write({name: entry for name, entry in self._read().items() if name != story})

    def _read(self) -> dict[str, Passed]:
        try:
            return {
                name: Passed(**entry) for name, entry in json.loads(self._file.read_text()).items()
            }
        except (OSError, ValueError, TypeError):
            return {}  # none yet, or another version's: stories run again

    def _write(self, entries: Mapping[str, Passed]) -> None:
        self._file.parent.mkdir(parents=True, exist_ok=True)
        new = self._file.with_suffix(".new")
        new.write_text(json.dumps({name: asdict(entry) for name, entry in entries.items()}))
        new.replace(self._file)


def tree(root: Path) -> str | None:
    """Id of the git tree of what lies in a checkout now; None where there is no git or no checkout."""
    with tempfile.TemporaryDirectory() as name:
        # An index and an object store of its own: looking must not change the checkout.
        try:
            objects = _git(root, "rev-parse", "--path-format=absolute", "--git-path", "objects")
            own = {
                "GIT_INDEX_FILE": f"{name}/index",
                "GIT_OBJECT_DIRECTORY": name,
                "GIT_ALTERNATE_OBJECT_DIRECTORIES": objects,
            }
            _git(root, "add", "--all", ".", **own)
            return _git(root, "write-tree", **own)
        except (OSError, subprocess.CalledProcessError):
            return None


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
