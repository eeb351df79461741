"""Text in Markdown: what a config holds shows as it is, and does nothing.

The comment in a pull request is read by people who trust it. A value with an image, a link, a
mention or HTML in it must not become one there.
"""

from __future__ import annotations

import re

_SEVERAL = re.compile(r"`{2,}")
_ACTIVE = re.compile(r"([\\*\[\]!~#$|]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9]))")
# Addresses would become links by themselves.
_ENTITIES = {"<": "&lt;", ">": "&gt;", "@": "&#64;", "://": ":&#47;/"}


def escaped(text: str) -> str:
    """`text` on one line; what stands between single backticks stays code."""
    # Runs of backticks pair up by their length: with single ones alone the pairs are plain to see.
    parts = _SEVERAL.sub("''", " ".join(text.split())).split("`")
    if len(parts) % 2 == 0:  # the last one has no partner
        parts[-2:] = ["'".join(parts[-2:])]
    return "".join(
        code(part) if number % 2 and part.strip() else _plain(part)
        for number, part in enumerate(parts)
    )


def code(text: str) -> str:
    """`text` as code on one line, in a table too."""
    return f"`{' '.join(text.replace('`', chr(39)).split())}`".replace("|", "\\|")


def _plain(text: str) -> str:
    text = _ACTIVE.sub(r"\\\1", text.replace("&", "&amp;"))
    for sign, entity in _ENTITIES.items():
        text = text.replace(sign, entity)
    return text
