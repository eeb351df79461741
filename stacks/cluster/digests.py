"""Hashes of what a node should be."""

from __future__ import annotations

import hashlib


def digest(*texts: str) -> str:
    """Short hash of what a node should be."""
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]
