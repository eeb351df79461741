"""How a rendered file travels to its node: as a value of a phase."""

from __future__ import annotations


def of(file: str) -> str:
    """The file's text as a value: the shell adds the last newline."""
    return file.rstrip("\n")
