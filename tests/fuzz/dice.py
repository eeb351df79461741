"""Choices taken from bytes: the same bytes, the same choices, and zeros are the plainest ones.

Hypothesis draws the bytes, which is quick, and makes them smaller when a test fails: what is left
then is the smallest config that still fails.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Dice:
    """Deals out bytes; when they are spent, zeros."""

    def __init__(self, given: bytes) -> None:
        self._bytes = given
        self._at = 0

    def below(self, limit: int) -> int:
        """A number from 0 to `limit` - 1."""
        size = 1 if limit <= 0x100 else 4
        found = self._bytes[self._at : self._at + size].ljust(size, b"\0")
        self._at += size
        return int.from_bytes(found) * limit >> 8 * size

    def between(self, low: int, high: int) -> int:
        """A number from `low` to `high`, both included."""
        return low + self.below(high - low + 1)

    def chance(self, percent: int) -> bool:
        return self.below(100) >= 100 - percent

    def one_of(self, choices: Sequence[T]) -> T:
        return choices[self.below(len(choices))]
