"""A preview as files: for people, for the comment on a pull request, for an approval."""

from __future__ import annotations

import hashlib
import shutil
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What plan and engine say to a stack.

    Files: plan.md, preview.txt, problems.txt, steps.txt, digest, and status, which holds one line
    for each of plan (good, refused), preview (good, refused, none) and steps (how many of what).
    """

    words: str  # Markdown; of a refused config its problems
    words_good: bool
    terminal: str = ""  # the same words for a terminal; no file, and no part of an approval
    preview: str = ""  # the engine's diff
    problems: str = ""  # its errors and warnings
    preview_good: bool | None = None  # None: it was not asked
    steps: tuple[str, ...] = ()  # sorted

    @classmethod
    def broken(cls, reason: str) -> Self:
        """For a preview that could not start."""
        words = f"**The preview could not start.**\n\n```text\n{reason}\n```\n"
        return cls(words=words, words_good=False)

    @classmethod
    def read(cls, folder: Path) -> Self:
        """A report that was written; only what counts for an approval. Raises OSError."""
        status = (folder / "status").read_text().splitlines()
        return cls(
            words=(folder / "plan.md").read_text(),
            words_good="plan good" in status,
            preview_good="preview good" in status,
            steps=tuple((folder / "steps.txt").read_text().splitlines()),
        )

    def with_preview(
        self, preview: str, *, good: bool, problems: str = "", steps: tuple[str, ...] = ()
    ) -> Self:
        """With what the engine said."""
        return replace(self, preview=preview, problems=problems, preview_good=good, steps=steps)

    @property
    def good(self) -> bool:
        return self.words_good and self.preview_good is not False

    @property
    def digest(self) -> str:
        """SHA-256 of all that an approval is given to: the change plan and the steps."""
        return hashlib.sha256("\n".join([self.words, *self.steps]).encode()).hexdigest()

    @property
    def counts(self) -> str:
        """How many steps of which kind."""
        counts = Counter(step.split(" ", 1)[0] for step in self.steps)
        return ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items())) or "no change"

    def text(self) -> str:
        """All of it, for a terminal."""
        parts = [(self.terminal or self.words).rstrip()]
        if self.preview_good is not None:
            parts += [self.preview.rstrip(), self.problems.rstrip()]
            if self.preview_good:
                parts.append(f"steps: {self.counts}\ndigest: {self.digest}")
        return "\n\n".join(part for part in parts if part)

    def write(self, folder: Path) -> None:
        """Put the files into `folder`, in the place of what was there."""
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        preview = {None: "none", True: "good", False: "refused"}[self.preview_good]
        status = [
            f"plan {'good' if self.words_good else 'refused'}",
            f"preview {preview}",
            f"steps {self.counts}",
        ]
        files = {
            "plan.md": self.words,
            "preview.txt": self.preview,
            "problems.txt": self.problems,
            "steps.txt": "".join(f"{step}\n" for step in self.steps),
            "digest": f"{self.digest}\n",
            "status": "".join(f"{line}\n" for line in status),
        }
        for name, text in files.items():
            (folder / name).write_text(text)
