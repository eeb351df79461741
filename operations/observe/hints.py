"""One difference, and the words for what fixes most of them."""

from __future__ import annotations

from dataclasses import dataclass

UP = "run pulumi up"
RAISE = "raise converge.generation and run pulumi up"
AGAIN = "run pulumi up; if that has nothing to do, raise converge.generation and run it again"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    kind: str  # a word of docs/operate/drift.md, "What is compared"
    subject: str  # path, unit, program ... it is about
    text: str
    do: str
